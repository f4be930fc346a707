"""Exports renders as CSV for spreadsheets or JSON Lines for programs, without Sume's URLs.

Rows are streamed: however many there are, only a few are in memory.
"""

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from renders.models.querysets import RenderQuerySet
from renders.redaction import unsigned

CHUNK = 1_000
# A spreadsheet evaluates a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


def dollars(micros: int | None) -> str | None:
    """Millionths of a dollar as dollars. Exact: money is never a float."""
    if micros is None:
        return None
    whole, part = divmod(abs(micros), 1_000_000)
    return f"{'-' * (micros < 0)}{whole}.{part:06d}"


def _moment(moment: datetime | None) -> str | None:
    return timezone.localtime(moment).isoformat() if moment else None


def _cleaned(value: Any) -> Any:
    """A JSON value without anything that may sign a URL."""
    if isinstance(value, str):
        return unsigned(value)
    if isinstance(value, dict):
        return {name: _cleaned(inner) for name, inner in value.items()}
    return [_cleaned(inner) for inner in value] if isinstance(value, list) else value


def _files(result: Any) -> list[str]:
    artifacts = (result or {}).get("artifacts", [])
    return [artifact["file"] for artifact in artifacts if artifact.get("file")]


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _same(value: Any) -> Any:
    return value


# By name of the column: the row's field, and the function that writes its value.
FIELDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "id": ("pk", _text),
    "kind": ("kind", _same),
    "model": ("model", _same),
    "status": ("status", _same),
    "prompt": ("prompt", _same),
    "params": ("params", _cleaned),
    "priority": ("priority", _same),
    "reference": ("reference", _same),
    "user": ("created_by", _text),
    "workspace": ("workspace", _same),
    "retry_of": ("retry_of_id", _text),
    "created_at": ("created_at", _moment),
    "submitted_at": ("submitted_at", _moment),
    "finished_at": ("finished_at", _moment),
    "sume_job_id": ("sume_job_id", _same),
    "sume_status": ("sume_status", _same),
    "cost_usd_micros": ("cost_usd_micros", _same),
    "cost_usd": ("cost_usd_micros", dollars),
    "error_code": ("error_code", _same),
    "error_message": ("error_message", unsigned),
    "files": ("result", _files),
    "media_removed_at": ("media_removed_at", _moment),
    "erased_at": ("erased_at", _moment),
}


def rows(renders: RenderQuerySet, fields: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Each render as a dict of these fields, the oldest first."""
    wanted = [(name, *FIELDS[name]) for name in fields]
    name_of_user = f"created_by__{get_user_model().USERNAME_FIELD}"
    columns = {field: name_of_user if field == "created_by" else field for _, field, _ in wanted}
    values = renders.order_by("created_at", "pk").values_list(*columns.values())
    for row in values.iterator(chunk_size=CHUNK):
        value_of = dict(zip(columns, row, strict=True))
        yield {name: write(value_of[field]) for name, field, write in wanted}


def as_csv(found: Iterable[dict[str, Any]], fields: list[str]) -> Iterator[str]:
    """CSV text in chunks, beginning with the line of column names."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(fields)
    for row in found:
        writer.writerow([cell(value) for value in row.values()])
        if buffer.tell() > 65_536:
            yield _taken(buffer)
    yield _taken(buffer)


def as_jsonl(found: Iterable[dict[str, Any]]) -> Iterator[str]:
    """One JSON object per line."""
    for row in found:
        yield json.dumps(row, ensure_ascii=False) + "\n"


def cell(value: Any) -> Any:
    """A value as a cell that no spreadsheet evaluates as a formula."""
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    # Only text can be a formula: numbers stay numbers.
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


@contextmanager
def written_whole(path: Path) -> Iterator[IO[str]]:
    """A file that gets its name once it is complete; an incomplete one is deleted.

    Only its owner can read it, since prompts are private. Pipes and devices (/dev/stdout) are
    written directly, and never replaced.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
        return
    descriptor, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def _taken(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
