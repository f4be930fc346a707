"""The README and the pages of `docs`, as tests read them."""

import re
import shlex
from pathlib import Path

from django.conf import settings

ROOT = Path(settings.BASE_DIR)
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").glob("*.md"))]


def page(name: str) -> str:
    """The text of one page of `docs`."""
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def blocks(text: str, language: str = "sh") -> list[str]:
    """What stands between fences of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The words of each command in the shell blocks, variables before a command left out."""
    lines = [
        part for block in blocks(text) for line in block.splitlines() for part in line.split(" && ")
    ]
    found = [shlex.split(line, comments=True) for line in lines]
    return [
        [word for number, word in enumerate(words) if number or not re.match(r"[A-Z]+=", word)]
        for words in found
        if words
    ]


def rows(text: str, heading: str) -> list[list[str]]:
    """The rows of the table with this heading, each as its cells."""
    _, found, rest = text.partition(f"\n| {heading} |")
    assert found, f"There is no table | {heading} |."
    table = rest.split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def anchors(text: str) -> set[str]:
    """The names by which links reach the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
