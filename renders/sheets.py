"""Reads many requests for renders out of one text, and finds all that is wrong with them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from renders.exceptions import InvalidRender
from renders.inputs import KEYS, merge, place
from renders.layouts import Fault, Layout, lines_of
from renders.states import Kind, takes_model
from renders.validation import clean_request, request_errors

MAX_RENDERS = 50_000


@dataclass
class Sheet:
    """What was read: good requests with the lines they begin at, and all that is wrong."""

    requests: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    repeats: list[tuple[int, int]] = field(default_factory=list)
    """Lines that ask for the same as an earlier line, and that line."""


def read(text: str, layout: Layout, common: Mapping[str, Any]) -> Sheet:
    """Read and check all; `common` holds what a line does not say itself."""
    sheet = Sheet()
    seen: dict[str, int] = {}
    references: dict[str, int] = {}
    for line, found in lines_of(text, layout):
        if len(sheet.requests) + len(sheet.faults) >= MAX_RENDERS:
            text = f"More than {MAX_RENDERS:,} renders; add the rest afterwards."
            sheet.faults.append(Fault(line, text))
            break
        if isinstance(found, Fault):
            sheet.faults.append(found)
            continue
        request, wrong = _request(found, common)
        if not wrong:
            try:
                request = clean_request(**request)
            except InvalidRender:
                wrong = request_errors(request)
        if wrong:
            sheet.faults += [fault_of(line, error, found) for error in wrong]
            continue
        sheet.requests.append((line, request))
        _compare(sheet, request, line, seen, references)
    return sheet


def fault_of(line: int, error: InvalidRender, found: Iterable[str] = ()) -> Fault:
    """The fault of a line that names these fields."""
    return Fault(line, error.message, place(error, found))


def _request(
    found: Mapping[str, Any], common: Mapping[str, Any]
) -> tuple[dict[str, Any], list[InvalidRender]]:
    """The request of a line, where fields of one kind's own may stand beside `params`."""
    own = {name: value for name, value in found.items() if name in KEYS}
    said = {name: value for name, value in found.items() if name not in KEYS}
    request = {"prompt": "", **common, **said}
    kind = request.get("kind", Kind.IMAGE)
    if kind not in Kind.values:
        return request, []
    if not takes_model(kind) and "model" not in said:
        request.pop("model", None)  # what holds for all is not for this kind
    params = said.get("params", {})
    if not (own and isinstance(params, dict)):
        return request, []
    merged, wrong = merge(Kind(kind), own, params)
    for_all = {} if "params" in said else common.get("params") or {}
    request["params"] = {**for_all, **merged}
    return request, wrong


def _compare(
    sheet: Sheet,
    request: dict[str, Any],
    line: int,
    seen: dict[str, int],
    references: dict[str, int],
) -> None:
    """Point out what an earlier line asks for as well."""
    reference = request["reference"]
    if reference:
        first = references.setdefault(reference, line)
        if first != line:
            message = f"Line {first:,} has this reference too; each render needs its own."
            sheet.faults.append(Fault(line, message, "reference"))
    same = json.dumps({**request, "reference": ""}, sort_keys=True)
    first = seen.setdefault(same, line)
    if first != line:
        sheet.repeats.append((line, first))
