"""How a list of renders may be written, and what each line of it says.

Every fault names its line, counted as an editor counts, empty ones included. A cell that begins
with `=` is text like any other.
"""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from renders.inputs import COLUMNS, KEYS
from renders.validation import parse_json, request_fields

DELIMITERS = ",;\t"


class Layout(StrEnum):
    """How the text is written."""

    LINES = "lines"
    """One prompt a line."""
    TABLE = "table"
    """CSV with a line of names; commas, semicolons or tabs between."""
    JSON_LINES = "json lines"
    """One JSON object a line."""


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
class Fault:
    """What is wrong, where."""

    line: int
    message: str
    field: str = ""

    def __str__(self) -> str:
        where = f"Line {self.line:,}" if self.line else ""
        return ": ".join(filter(None, [", ".join(filter(None, [where, self.field])), self.message]))


def layout_of(name: str) -> Layout:
    """By the ending of a file's name. Raises `Unreadable`."""
    ending = name.rpartition(".")[2].lower()
    if ending not in ENDINGS:
        known = ", ".join(f".{known}" for known in ENDINGS)
        raise Unreadable(f"The file's name must end in one of {known}.")
    return ENDINGS[ending]


def decode(data: bytes) -> str:
    """UTF-8, with or without a byte order mark. Raises `Unreadable`."""
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


Found = Iterator[tuple[int, dict[str, Any] | Fault]]


def lines_of(text: str, layout: Layout) -> Found:
    """What each line that holds something says, or what is wrong with it."""
    return _READERS[layout](text.removeprefix("\ufeff"))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines that hold something; not by `splitlines`, which splits at more than line ends."""
    for number, line in enumerate(_unix(text).split("\n"), 1):
        if line.strip():
            yield number, line


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _prompts(text: str) -> Found:
    for number, line in _lines(text):
        yield number, {"prompt": line.strip()}


def _known() -> str:
    return f"Known are: {', '.join([*request_fields(), *COLUMNS])}."


def _json_lines(text: str) -> Found:
    known = {*request_fields(), *KEYS}
    for number, line in _lines(text):
        try:
            value = parse_json(line)
        except ValueError as error:
            yield number, Fault(number, str(error))
            continue
        if not isinstance(value, dict):
            yield number, Fault(number, 'A JSON object is needed: {"prompt": "A boat"}.')
        elif unknown := sorted(repr(name) for name in value.keys() - known):
            yield number, Fault(number, f"Unknown fields: {', '.join(unknown)}. {_known()}")
        else:
            yield number, value


def _table(text: str) -> Found:
    rows = _rows(text)
    line, names = next(rows, (1, []))
    if isinstance(names, Fault):
        yield line, names
        return
    names = [name.strip().lower() for name in names]
    fault = _fault_of_names(names)
    if fault:
        yield line, Fault(line, f"{fault} {_known()}")
        return
    for line, cells in rows:
        if isinstance(cells, Fault):
            yield line, cells
        elif any(cell.strip() for cell in cells[len(names) :]):
            yield (
                line,
                Fault(line, "More cells than columns: text that holds a separator needs quotes."),
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
    """Rows that hold something, each with the line it begins at."""
    first = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(_unix(text), newline=""), delimiter=delimiter, strict=True)
    line = 1
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield line, Fault(line, f"Not a table from here on: {error}. Are the quotes in pairs?")
            return
        if cells is None:
            return
        if any(cell.strip() for cell in cells):
            yield line, cells
        line = reader.line_num + 1


def _fields(line: int, cells: dict[str, str]) -> Found:
    """The values of a row; an empty cell says nothing."""
    fields: dict[str, Any] = {name: cell for name, cell in cells.items() if cell.strip()}
    for name in fields.keys() & {"kind", "model", "priority", "workspace", *COLUMNS}:
        fields[name] = fields[name].strip()
    if "priority" in fields:
        digits = fields["priority"]
        # Anything else stays text, which the check of the request refuses.
        if digits.removeprefix("-").isascii() and digits.removeprefix("-").isdigit():
            fields["priority"] = int(digits[:10])
    if "params" in fields:
        try:
            fields["params"] = parse_json(fields["params"])
        except ValueError as error:
            yield line, Fault(line, str(error), "params")
            del fields["params"]
    yield line, fields


_READERS = {Layout.LINES: _prompts, Layout.TABLE: _table, Layout.JSON_LINES: _json_lines}
