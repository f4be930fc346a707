"""The layout that DESIGN promises: who imports what, who writes a status, how long a file is."""

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


MODULES = {name_of(path): path for path in FILES}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports_of(tree: ast.AST, module: str, *, is_package: bool = False) -> set[str]:
    """The dotted names of all that is imported, anywhere in the file."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = node.module or ""
            if node.level:
                parts = module.split(".")
                keep = len(parts) - node.level + is_package
                start = ".".join([*parts[:keep], *([start] if start else [])])
            found |= {start} | {f"{start}.{alias.name}" for alias in node.names}
    return found


def imports(path: Path) -> set[str]:
    return imports_of(tree_of(path), name_of(path), is_package=path.name == "__init__.py")


def roots(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def reached_from(module: str) -> set[str]:
    """All that a module of ours imports, through modules of ours."""
    found: set[str] = set()
    todo = {module}
    while todo:
        names = imports(MODULES[todo.pop()])
        todo |= {name for name in names & MODULES.keys() if name not in found}
        found |= names
    return found


each_file = pytest.mark.parametrize("path", FILES, ids=name_of)

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
MAY_WRITE = {"renders.querysets", "renders.sending", "renders.moves", "renders.exceptions"}


@pytest.mark.parametrize(
    "path", [path for path in OWN if name_of(path) not in MAY_WRITE], ids=name_of
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


def test_no_error_has_the_status_of_a_row():
    assert "renders.models" not in reached_from("renders.exceptions")


# --- Who imports what ---------------------------------------------------------------------


def test_the_search_understands_relative_imports():
    code = ast.parse("from . import a\nfrom .b import c\nfrom ..d import e\nimport f.g")

    assert imports_of(code, "renders.x.y") >= {
        "renders.x.a",
        "renders.x.b",
        "renders.x.b.c",
        "renders.d.e",
        "f.g",
    }


@each_file
def test_only_the_client_imports_requests(path):
    if name_of(path) == "renders.sume.client":
        assert "requests" in roots(imports(path))
    else:
        assert "requests" not in roots(imports(path))


@pytest.mark.parametrize(
    "path", [path for path in FILES if "sandbox" in path.relative_to(ROOT).parts], ids=name_of
)
def test_the_sandbox_knows_nothing_of_the_app(path):
    ours = {name for name in imports(path) if name.partition(".")[0] in {"renders", "project"}}

    assert {name for name in ours if not name.startswith("renders.sandbox")} <= {"renders"}


@pytest.mark.parametrize(
    "path",
    # The demo and its command run it, and so do a project's own tests.
    [
        path
        for path in OWN
        if path.relative_to(ROOT).parts[0] not in {"demo", "management", "testing"}
    ],
    ids=name_of,
)
def test_the_app_knows_nothing_of_the_sandbox_and_of_tests(path):
    assert under(imports(path), {"renders.sandbox", "renders.testing", "pytest"}) == set()


FORBIDDEN = {
    "apps": {"redis", "requests", "celery"},
    "checks": {
        "renders.models",
        "renders.sume.client",
        "renders.tasks",
        "celery",
        "redis",
        "requests",
    },
    "starting": {"renders.models", "renders.tasks", "celery", "redis", "requests"},
    "conf": {"renders.models", "celery", "redis", "requests"},
    "celery_settings": {"renders.models", "renders.conf", "django", "requests", "renders.tasks"},
    "celery_app": {"renders.models", "renders.conf", "redis", "requests"},
    "checks.installation": {"renders.models", "celery", "kombu", "redis", "requests"},
    "reporting": {"renders", "celery", "redis", "requests"},
    "values": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "kinds": {"renders.models", "celery", "redis", "requests"},
    "workspaces": {"renders.models", "renders.sume.client", "celery", "redis", "requests"},
    "secrets_file": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "spending": {"renders.sume.client", "renders.tasks", "celery", "kombu", "redis", "requests"},
    "prices": {"renders.sume.client", "renders.tasks", "celery", "kombu", "redis", "requests"},
    "loads": {"renders.sume.client", "renders.tasks", "celery", "kombu", "redis", "requests"},
    "waiting_limit": {
        "renders.sume.client",
        "renders.tasks",
        "celery",
        "kombu",
        "redis",
        "requests",
    },
    "choosing": {"renders.sume.client", "renders.tasks", "celery", "kombu", "redis", "requests"},
    "checks.workspaces": {"renders.models", "celery", "redis", "requests"},
    "exceptions": {"requests", "django"},
    "pacing": {"time", "django", "celery", "redis", "requests", "renders"},
    "states": {"celery", "redis", "requests", "renders"},
    "steps": {"celery", "redis", "requests", "django"},
    "replies": {"requests", "celery", "redis", "renders.models"},
    "client": {"renders.models", "renders.conf", "django.conf", "celery", "redis"},
    "addresses": {"renders", "django", "celery", "redis", "requests"},
    "destination": {"renders.models", "renders.sume.client", "celery", "redis", "requests"},
    "hosts": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "downloads": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "formats": {"renders", "django", "celery", "redis", "requests"},
    "thumbnails": {"renders", "django", "celery", "redis", "requests"},
    "ranges": {"renders", "celery", "redis", "requests"},
    "storage": {"renders.models", "renders.sume.client", "celery", "redis", "requests"},
    "media": {"renders.models", "celery", "kombu", "redis", "requests"},
    "holding": {"renders.models", "celery", "requests"},
    "saving": {"celery", "kombu", "requests", "renders.schedulers.dispatch", "renders.tasks"},
    "late_media": {"celery", "kombu", "requests", "renders.schedulers.dispatch", "renders.tasks"},
    "fetching": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.tasks",
    },
    "media_moves": {"celery", "kombu", "redis", "requests", "renders.signals", "renders.tasks"},
    "monitors": {"renders.models", "requests", "celery", "redis"},
    "models": {"celery", "kombu", "redis", "requests", "renders.sume.client", "renders.tasks"},
    "queries": {"celery", "kombu", "redis", "requests", "renders.signals", "renders.tasks"},
    "querysets": {"celery", "kombu", "redis", "requests", "renders.signals", "renders.tasks"},
    "gate": {"renders.models.RenderJob", "renders.models.RenderEvent", "celery", "requests"},
    "admission": {"renders.models.RenderJob", "renders.models.RenderEvent", "celery", "redis"},
    "checking": {"celery", "kombu", "redis", "renders.tasks", "renders.sume.client"},
    "backlog": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "crew": {"django", "celery", "kombu", "redis", "requests", "renders.models"},
    "due": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.sume.client",
    },
    "learning": {
        "django",
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.sume.client",
        "renders.schedulers.queues",
    },
    "listening": {"celery", "kombu", "redis", "requests", "renders.models", "renders.sume.client"},
    "reader": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.tasks",
    },
    "reading": {"celery", "kombu", "redis", "requests", "renders.signals", "renders.tasks"},
    "budget": {"renders.models.RenderJob", "renders.sume.client", "celery", "kombu", "requests"},
    "reconciliation": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.sume.client",
        "renders.tasks",
    },
    "recording": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.sume.client",
        "renders.schedulers.queues",
    },
    "running": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.tasks",
    },
    "sortedset": {"renders.models", "renders.conf", "django", "celery", "kombu", "requests"},
    "stopping": {"renders", "django", "celery", "redis", "requests"},
    "threads": {"renders", "django", "celery", "redis", "requests"},
    "ticks": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.tasks",
    },
    "transport": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "upkeep": {
        "celery",
        "kombu",
        "redis",
        "requests",
        "renders.schedulers.dispatch",
        "renders.tasks",
    },
    "claims": {"celery", "kombu", "redis", "renders.tasks", "renders.sume.client"},
    "sending": {"celery", "kombu", "redis", "requests", "renders.signals", "renders.tasks"},
    "redis_url": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "redis_clients": {"renders.models", "renders.conf", "django", "celery", "requests"},
    "lease": {"renders.models", "celery", "requests"},
    "log_context": {"renders", "django", "celery", "redis", "requests"},
    "request_ids": {"renders.models", "renders.conf", "celery", "redis", "requests"},
    "meters": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "counting": {"renders.models", "renders.conf", "django", "celery", "redis", "requests"},
    "tallies": {"celery", "kombu", "redis", "requests", "renders.sume.client", "renders.tasks"},
    "measuring": {"celery", "kombu", "redis", "requests", "renders.sume.client", "renders.tasks"},
    "exposition": {"renders.models", "celery", "redis", "requests", "renders.telemetry.store"},
    "submission": {"celery", "kombu", "renders.coordination.leases", "renders.tasks"},
    "polling": {"celery", "kombu", "renders.tasks"},
    "finishing": {"celery", "kombu", "renders.schedulers.dispatch", "renders.tasks"},
    "cancellation": {"celery", "kombu", "renders.tasks"},
    "pruning": {"celery", "kombu", "renders.schedulers.dispatch", "renders.tasks"},
    "removal": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "retention": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "erasing": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "exporting": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "costing": {"celery", "kombu", "redis", "requests", "renders.tasks", "renders.sume.client"},
    "daily": {"renders", "celery", "kombu", "redis", "requests"},
    "sweep": {"celery", "kombu", "renders.schedulers.dispatch", "renders.tasks"},
    "services": {"requests", "renders.sume.client", "celery", "kombu"},
    "signals": {"celery", "kombu", "renders.sume.client"},
    "announcements": {"requests", "renders.sume.client", "celery", "kombu", "redis"},
    "access": {"requests", "renders.sume.client", "celery", "redis"},
    "artifacts": {"requests", "renders.sume.client", "celery", "redis"},
    "webhooks": {"requests", "renders.sume.client", "celery", "redis", "renders.models"},
    "views": {"requests", "renders.sume.client", "celery", "redis"},
    "api": {"requests", "renders.sume.client", "renders.tasks", "celery", "redis"},
    "idempotency": {"requests", "renders.sume.client", "renders.tasks", "celery", "django.http"},
    "admin": {"requests", "renders.sume.client", "celery", "redis"},
    "attention": {"requests", "renders.sume.client", "celery", "redis"},
    "api_call": {"requests", "renders.sume.client", "celery", "redis"},
    "drawing": {"requests", "renders.models", "django", "celery", "redis"},
    "filtering": {"requests", "renders.sume.client", "celery", "redis"},
    "history": {"requests", "renders.sume.client", "celery", "redis"},
    "paging": {"requests", "renders.sume.client", "celery", "redis"},
    "progress": {"requests", "renders.sume.client", "celery", "redis"},
    "standing": {"requests", "renders.sume.client", "celery", "redis"},
    "beat_sign": {"renders.models", "requests", "renders.sume.client"},
    "health": {"requests", "redis", "renders.tasks", "renders.schedulers.dispatch"},
    "outages": {"renders", "celery", "kombu", "redis", "requests"},
    "pulse": {"celery", "kombu", "redis", "requests", "renders.sume.client"},
    "batches": {"requests", "renders.sume.client", "celery", "kombu", "redis", "renders.tasks"},
    "inputs": {"renders.models", "django", "celery", "redis", "requests"},
    "kind_fields": {"requests", "renders.sume.client", "renders.models", "celery", "redis"},
    "titles": {"requests", "renders.sume.client", "celery", "redis"},
    "layouts": {"renders.models", "django", "celery", "redis", "requests"},
    "sheets": {"renders.models", "django", "celery", "redis", "requests"},
    "drafts": {"requests", "renders.sume.client", "celery", "redis"},
    "forms": {"requests", "renders.sume.client", "celery", "redis"},
    "testing": {"requests", "renders.sume.client", "celery", "kombu", "redis"},
    "widgets": {"renders.models", "requests", "celery", "redis"},
}


def under(names: set[str], forbidden: set[str]) -> set[str]:
    return {
        name for name in names for bad in forbidden if name == bad or name.startswith(f"{bad}.")
    }


@pytest.mark.parametrize(("module", "forbidden"), FORBIDDEN.items(), ids=FORBIDDEN)
def test_a_module_does_not_import_what_it_must_not_know(module, forbidden):
    package = under(set(MODULES), {f"renders.{module}"})

    assert package
    assert under({name for one in package for name in imports(MODULES[one])}, forbidden) == set()


@pytest.mark.parametrize("module", ["models", "querysets", "conf", "replies", "pacing"])
def test_not_even_through_others_do_the_tables_know_messages(module):
    reached = reached_from(f"renders.{module}")

    assert under(reached, {"celery", "kombu", "redis", "requests", "renders.tasks"}) == set()


@pytest.mark.parametrize("module", ["running", "reader", "backlog", "recording"])
def test_what_runs_by_the_table_alone_knows_no_broker_even_through_others(module):
    assert under(reached_from(f"renders.{module}"), {"celery", "kombu", "renders.tasks"}) == set()


# --- How long -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent.name != "migrations"], ids=name_of
)
def test_a_module_stays_short(path):
    assert len(path.read_text("utf-8").splitlines()) <= MOST_LINES


def test_there_is_no_drawer_for_odds_and_ends():
    assert not {path.stem for path in FILES} & {"utils", "helpers", "misc", "common"}
