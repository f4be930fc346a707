"""Reads many requests for renders from one text, and lists everything that is wrong with them.

A text is a list of prompts, a table (CSV) or JSON Lines. Every fault names its line, counted as an
editor counts: empty lines are included. A cell that begins with `=` is text like any other.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from renders.exceptions import InvalidRender
from renders.services.inputs import COLUMNS, KEYS, merge, place
from renders.services.validation import clean_request, parse_json, request_errors, request_fields
from renders.states import Kind, takes_model

MAX_RENDERS = 50_000
DELIMITERS = ",;\t"


class Layout(StrEnum):
    """The format of a text."""

    LINES = "lines"
    """One prompt per line."""
    TABLE = "table"
    """CSV with column names in the first line; separated by commas, semicolons or tabs."""
    JSON_LINES = "json lines"
    """One JSON object per line."""


ENDINGS = {
    "txt": Layout.LINES,
    "csv": Layout.TABLE,
    "tsv": Layout.TABLE,
    "jsonl": Layout.JSON_LINES,
    "ndjson": Layout.JSON_LINES,
}


class Unreadable(ValueError):
    """The text as a whole cannot be read; the message says what to do."""


@dataclass(frozen=True)
class LineError:
    """What is wrong, and in which line; line 0 means the text as a whole."""

    line: int
    message: str
    field: str = ""

    def __str__(self) -> str:
        where = f"Line {self.line:,}" if self.line else ""
        return ": ".join(filter(None, [", ".join(filter(None, [where, self.field])), self.message]))


# Each line's number, with its fields or its fault.
Lines = Iterator[tuple[int, dict[str, Any] | LineError]]


@dataclass
class Sheet:
    """The valid requests, each with the line where it begins, and all faults."""

    requests: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    faults: list[LineError] = field(default_factory=list)
    repeats: list[tuple[int, int]] = field(default_factory=list)
    """Lines that repeat an earlier line's request, each with that line."""


def read(text: str, layout: Layout, common: Mapping[str, Any]) -> Sheet:
    """Read and check all lines; `common` holds the fields that a line may leave out."""
    sheet = Sheet()
    seen: dict[str, int] = {}
    references: dict[str, int] = {}
    for line, fields in lines_of(text, layout):
        if len(sheet.requests) + len(sheet.faults) >= MAX_RENDERS:
            text = f"More than {MAX_RENDERS:,} renders; add the rest afterwards."
            sheet.faults.append(LineError(line, text))
            break
        if isinstance(fields, LineError):
            sheet.faults.append(fields)
            continue
        request, wrong = _request(fields, common)
        if not wrong:
            try:
                request = clean_request(**request)
            except InvalidRender:
                wrong = request_errors(request)
        if wrong:
            sheet.faults += [fault_of(line, error, fields) for error in wrong]
            continue
        sheet.requests.append((line, request))
        _compare(sheet, request, line, seen, references)
    return sheet


def layout_of(name: str) -> Layout:
    """The layout for the ending of a file's name. Raises `Unreadable`."""
    ending = name.rpartition(".")[2].lower()
    if ending not in ENDINGS:
        known = ", ".join(f".{known}" for known in ENDINGS)
        raise Unreadable(f"The file's name must end in one of {known}.")
    return ENDINGS[ending]


def decode(data: bytes) -> str:
    """The text of a UTF-8 file, with or without a byte order mark. Raises `Unreadable`."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise Unreadable(
            f"The file is not UTF-8: line {line:,} holds something else. Save it anew; in a "
            "spreadsheet choose “CSV UTF-8”, in an editor the encoding UTF-8."
        ) from None
    if "\x00" in text:
        raise Unreadable("The file holds NUL characters: it is not a text file, or not UTF-8.")
    return text


def lines_of(text: str, layout: Layout) -> Lines:
    """The fields of each line that is not empty, or what is wrong with it."""
    return _READERS[layout](text.removeprefix("\ufeff"))


def fault_of(line: int, error: InvalidRender, found: Iterable[str] = ()) -> LineError:
    """The error as a fault of this line, which names these fields."""
    return LineError(line, error.message, place(error, found))


def _request(
    fields: Mapping[str, Any], common: Mapping[str, Any]
) -> tuple[dict[str, Any], list[InvalidRender]]:
    """The request of a line, and its errors. A kind's own fields may be given outside `params`."""
    own = {name: value for name, value in fields.items() if name in KEYS}
    shared = {name: value for name, value in fields.items() if name not in KEYS}
    request = {"prompt": "", **common, **shared}
    kind = request.get("kind", Kind.IMAGE)
    if kind not in Kind.values:
        return request, []
    if not takes_model(kind) and "model" not in shared:
        request.pop("model", None)  # this kind has no model: the common one does not apply
    params = shared.get("params", {})
    if not (own and isinstance(params, dict)):
        return request, []
    merged, wrong = merge(Kind(kind), own, params)
    for_all = {} if "params" in shared else common.get("params") or {}
    request["params"] = {**for_all, **merged}
    return request, wrong


def _compare(
    sheet: Sheet,
    request: dict[str, Any],
    line: int,
    seen: dict[str, int],
    references: dict[str, int],
) -> None:
    """Note a reference or a request that an earlier line has too."""
    reference = request["reference"]
    if reference:
        first = references.setdefault(reference, line)
        if first != line:
            message = f"Line {first:,} has this reference too; each render needs its own."
            sheet.faults.append(LineError(line, message, "reference"))
    same = json.dumps({**request, "reference": ""}, sort_keys=True)
    first = seen.setdefault(same, line)
    if first != line:
        sheet.repeats.append((line, first))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that are not empty; not by `splitlines`, which splits at more than line ends."""
    for number, line in enumerate(_unix(text).split("\n"), 1):
        if line.strip():
            yield number, line


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _prompts(text: str) -> Lines:
    for number, line in _lines(text):
        yield number, {"prompt": line.strip()}


def _known() -> str:
    return f"Known are: {', '.join([*request_fields(), *COLUMNS])}."


def _json_lines(text: str) -> Lines:
    known = {*request_fields(), *KEYS}
    for number, line in _lines(text):
        try:
            value = parse_json(line)
        except ValueError as error:
            yield number, LineError(number, str(error))
            continue
        if not isinstance(value, dict):
            yield number, LineError(number, 'A JSON object is needed: {"prompt": "A boat"}.')
        elif unknown := sorted(repr(name) for name in value.keys() - known):
            yield number, LineError(number, f"Unknown fields: {', '.join(unknown)}. {_known()}")
        else:
            yield number, value


def _table(text: str) -> Lines:
    rows = _rows(text)
    line, names = next(rows, (1, []))
    if isinstance(names, LineError):
        yield line, names
        return
    names = [name.strip().lower() for name in names]
    fault = _fault_of_names(names)
    if fault:
        yield line, LineError(line, f"{fault} {_known()}")
        return
    for line, cells in rows:
        if isinstance(cells, LineError):
            yield line, cells
        elif any(cell.strip() for cell in cells[len(names) :]):
            yield (
                line,
                LineError(
                    line, "More cells than columns: text that holds a separator needs quotes."
                ),
            )
        else:
            yield from _fields(line, dict(zip(names, cells, strict=False)))


def _fault_of_names(names: list[str]) -> str:
    unknown = [repr(name) for name in names if name not in (*request_fields(), *COLUMNS)]
    if not any(names):
        return "The first line must name the columns."
    if unknown:
        return f"The first line names the columns; not known: {', '.join(unknown)}."
    if "prompt" not in names:
        return "A column named prompt is needed."
    if len(set(names)) < len(names):
        return "A column is named twice."
    return ""


def _rows(text: str) -> Iterator[tuple[int, Any]]:
    """Rows that are not empty, each with the line where it begins."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(_unix(text), newline=""), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield (
                line,
                LineError(line, f"Not a table from here on: {error}. Are the quotes in pairs?"),
            )
            return
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _fields(line: int, cells: dict[str, str]) -> Lines:
    """The values of a row; an empty cell counts as missing."""
    fields: dict[str, Any] = {name: cell for name, cell in cells.items() if cell.strip()}
    for name in fields.keys() & {"kind", "model", "priority", "workspace", *COLUMNS}:
        fields[name] = fields[name].strip()
    if "priority" in fields:
        digits = fields["priority"]
        # Anything else remains text, which the check of the request refuses.
        if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit():
            fields["priority"] = int(digits[:10])
    if "params" in fields:
        try:
            fields["params"] = parse_json(fields["params"])
        except ValueError as error:
            yield line, LineError(line, str(error), "params")
            del fields["params"]
    yield line, fields


_READERS = {Layout.LINES: _prompts, Layout.TABLE: _table, Layout.JSON_LINES: _json_lines}
