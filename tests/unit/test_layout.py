"""What no linter knows: who writes a status, how long a file is, how many a room holds.

Who imports what is the law in pyproject.toml, which import-linter keeps.
"""

import ast
from pathlib import Path

import pytest

import renders

ROOT = Path(renders.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
OWN = [path for path in FILES if not {"sandbox", "migrations"} & set(path.relative_to(ROOT).parts)]
MOST_LINES = 400


def name_of(path: Path) -> str:
    """The dotted name of the module in this file."""
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


# --- Who writes a status ------------------------------------------------------------------

WRITERS = {"update", "create", "get_or_create", "update_or_create", "bulk_update", "save"}


def status_writes(tree: ast.AST) -> list[int]:
    """The lines that write a row's status."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            lines += [target.lineno for target in targets for target in _status_targets(target)]
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            called = node.func.id if isinstance(node.func, ast.Name) else called
            words = {
                inner.value
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]
                for inner in ast.walk(argument)
                if isinstance(inner, ast.Constant)
            }
            named = "status" in {keyword.arg for keyword in node.keywords}
            if called in WRITERS | {"RenderJob"} and (named or "status" in words):
                lines.append(node.lineno)
            if called == "setattr" and "status" in words:
                lines.append(node.lineno)
    return sorted(lines)


def _status_targets(target: ast.AST) -> list[ast.Attribute]:
    return [
        node
        for node in ast.walk(target)
        if isinstance(node, ast.Attribute) and node.attr == "status"
    ]


@pytest.mark.parametrize(
    "code",
    [
        "render.status = 'failed'",
        "a, render.status = 1, 'failed'",
        "self.status = Status.FAILED",
        "render.status: str = 'failed'",
        "RenderJob.objects.filter(pk=pk).update(status=Status.FAILED)",
        "queryset.update(priority=1, status='failed')",
        "queryset.update(**{'status': 'failed'})",
        "RenderJob(prompt='x', status='failed')",
        "RenderJob.objects.create(status='failed')",
        "RenderJob.objects.bulk_update(rows, ['status'])",
        "render.save(update_fields=['status'])",
        "setattr(render, 'status', 'failed')",
    ],
)
def test_the_search_finds_what_writes_a_status(code):
    assert status_writes(ast.parse(code)) == [1]


@pytest.mark.parametrize(
    "code",
    [
        "if render.status == 'failed': pass",
        "RenderJob.objects.filter(status='failed')",
        "status = client.status(job_id)",
        "render.sume_status = 'x'",
        "JsonResponse({}, status=400)",
        "queryset.update(sume_status='x')",
    ],
)
def test_the_search_leaves_alone_what_only_reads_it(code):
    assert status_writes(ast.parse(code)) == []


# The transitions themselves, and the HTTP status of an error.
MAY_WRITE = ("renders.transitions.", "renders.exceptions")


@pytest.mark.parametrize(
    "path", [path for path in OWN if not name_of(path).startswith(MAY_WRITE)], ids=name_of
)
def test_no_module_but_the_transitions_writes_a_status(path):
    assert status_writes(tree_of(path)) == []


def workspace_changes(tree: ast.AST) -> list[int]:
    """The lines that change which account a row belongs to, once it is made."""
    lines = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            inner = [one for target in targets for one in ast.walk(target)]
            lines += [
                one.lineno
                for one in inner
                if isinstance(one, ast.Attribute) and one.attr == "workspace"
            ]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = {
                inner.value for one in node.args for inner in ast.walk(one)
                if isinstance(inner, ast.Constant)
            }  # fmt: skip
            named = {keyword.arg for keyword in node.keywords} | words
            if node.func.attr in {"update", "bulk_update", "update_or_create"}:
                lines += [node.lineno] * ("workspace" in named)
    return lines


@pytest.mark.parametrize(
    "code",
    [
        "render.workspace = 'acme'",
        "renders.filter(pk=pk).update(workspace='acme')",
        "renders.bulk_update(rows, ['workspace'])",
    ],
)
def test_the_search_finds_what_changes_a_workspace(code):
    assert workspace_changes(ast.parse(code)) == [1]


@pytest.mark.parametrize("path", OWN, ids=name_of)
def test_a_render_never_changes_its_account(path):
    """With another account's key, the same request would be another bill."""
    assert workspace_changes(tree_of(path)) == []


# --- How long -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name != "migrations"], ids=name_of
)
def test_a_module_stays_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES


def test_there_is_no_drawer_for_odds_and_ends():
    assert not {path.stem for path in FILES} & {"utils", "helpers", "misc", "common"}


ROOMS = sorted({path.parent for path in OWN} - {ROOT / "management" / "commands"})
MOST_MODULES = 12


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_is_taken_in_at_a_glance(room):
    assert len([path for path in room.glob("*.py") if path.stem != "__init__"]) <= MOST_MODULES
