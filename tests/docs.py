"""What the documentation repeats from the code. `python -m tests.docs` writes it anew, in place."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from renders.conf import Conf, Setting

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ".env.example"
HOW = "To write it anew: python -m tests.docs"
# Not set as RENDERS_<NAME>.
NAMED_ELSEWHERE = {"API_KEY", "BASE_URL", "REDIS_URL", "WEBHOOK_SECRET"}
LEVELS = {"Error", "Warning", "Info"}
# Whose text is made elsewhere.
UNREADABLE = ("`RENDERS[…]`: what is needed instead of this value.", "Its line in the settings.")


def settings() -> dict[str, Setting[Any]]:
    """The app's settings, in the order of the code."""
    return {name: entry for name, entry in vars(Conf).items() if isinstance(entry, Setting)}


def shown(default: object) -> str:
    """A default as a person would write it into the environment."""
    if isinstance(default, bool):
        return f"{default:d}"
    if default in ({}, ()):
        return ""
    return f"{default:g}" if isinstance(default, float) else str(default)


def settings_rows() -> list[str]:
    """The table of settings."""
    cells = (
        (f"`{name}`", f"`{text}`" if (text := shown(entry.default)) else "none", entry.help)
        for name, entry in settings().items()
    )
    return [f"| {' | '.join(row)} |" for row in cells]


def checks_rows() -> list[str]:
    """The table of system checks, by number."""
    found: dict[str, tuple[str, str]] = {}
    texts = (path.read_text("utf-8") for path in sorted((ROOT / "renders").rglob("*.py")))
    for text in (text for text in texts if "django.core.checks" in text):
        for check, says, do in _checks_of(ast.parse(text)):
            if check in found:
                raise AssertionError(f"Two checks are called {check}.")
            found[check] = says, do
    return [
        f"| `{check}` | {' | '.join(found[check])} |"
        for check in sorted(found, key=lambda check: check.rpartition(".")[2][1:])
    ]


def _checks_of(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    known = {
        target.id: str(node.value.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in LEVELS:
            given = {word.arg: word.value for word in node.keywords}
            if isinstance(check := given.get("id"), ast.Constant):
                says, do = _text(node.args[0], known), _text(given["hint"], known)
                says, do = (says, do) if says else UNREADABLE
                yield str(check.value), says.replace("|", "\\|"), do.replace("|", "\\|")


def _text(node: ast.expr, known: dict[str, str]) -> str:
    """A text of the code; `…` stands for what is known only when it is said."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.IfExp):
        return f"{_text(node.body, known)} / {_text(node.orelse, known)}"
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part, known) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return known.get(getattr(node.value, "id", ""), "…")
    return ""


def example_lines() -> list[str]:
    """The app's own settings, as lines that set nothing yet."""
    lines = []
    for name, entry in settings().items():
        if name not in NAMED_ELSEWHERE:
            lines += [f"# {entry.help}", f"# RENDERS_{name}={shown(entry.default)}"]
    return lines


TABLES = {
    "| name | default | meaning |": settings_rows,
    "| id | it says | what to do |": checks_rows,
}


def page_with(heading: str) -> Path:
    """The page that holds the table of this heading."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    [page] = [page for page in pages if f"\n{heading}\n" in page.read_text("utf-8")]
    return page


def renewed() -> dict[Path, str]:
    """The pages as they should be."""
    pages: dict[Path, str] = {}
    for heading, rows in TABLES.items():
        page = page_with(heading)
        before, _, after = pages.get(page, page.read_text("utf-8")).partition(f"\n{heading}\n")
        rule, *rest = after.splitlines(keepends=True)
        while rest and rest[0].startswith("|"):
            rest.pop(0)
        table = "".join(f"{row}\n" for row in rows())
        pages[page] = f"{before}\n{heading}\n{rule}{table}{''.join(rest)}"
    example = ROOT / EXAMPLE
    before, _, after = example.read_text("utf-8").partition("# --- The app's own")
    rule = after.splitlines()[0]
    pages[example] = f"{before}# --- The app's own{rule}\n\n" + "\n".join([*example_lines(), ""])
    return pages


if __name__ == "__main__":
    for page, text in renewed().items():
        changed = text != page.read_text("utf-8")
        page.write_text(text, "utf-8")
        sys.stdout.write(f"{page.relative_to(ROOT)}: {'written' if changed else 'unchanged'}\n")
