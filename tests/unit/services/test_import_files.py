"""Many requests in one text: what is read, and what is said where something is wrong."""

import json

import pytest

from renders.services import import_files
from renders.services.import_files import Layout, Unreadable, decode, layout_of, read

COMMON = {"kind": "image", "model": "sume/auto", "priority": 0, "params": {}}


def found(text, layout=Layout.TABLE):
    sheet = read(text, layout, COMMON)
    assert sheet.faults == []
    return sheet.requests


def prompts(text, layout=Layout.TABLE):
    return [(line, request["prompt"]) for line, request in found(text, layout)]


def faults(text, layout=Layout.TABLE):
    return [str(fault) for fault in read(text, layout, COMMON).faults]


# --- Prompts ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["Unix", "Windows", "old Mac"])
def test_each_line_is_a_prompt_and_empty_ones_count_as_lines(end):
    text = end.join(["a fox", "", "  ", " a hen ", ""])

    assert prompts(text, Layout.LINES) == [(1, "a fox"), (4, "a hen")]


def test_what_only_looks_like_a_line_end_is_none():
    assert prompts("a\u2028fox\x0c1", Layout.LINES) == [(1, "a\u2028fox\x0c1")]


# --- Tables -------------------------------------------------------------------------------


def test_a_table_gives_what_its_columns_name_and_the_rest_is_common():
    names = "Prompt,priority,params,reference,kind,model"
    text = names + '\na fox,-3,"{""seed"": 7}",r1,video,sume/x\nb,,,,,'
    [(_, first), (_, second)] = found(text)

    assert first == {
        "prompt": "a fox",
        "priority": -3,
        "params": {"seed": 7},
        "reference": "r1",
        "kind": "video",
        "model": "sume/x",
    }
    assert second == {**COMMON, "prompt": "b", "reference": None}


@pytest.mark.parametrize("separator", [",", ";", "\t"], ids=["comma", "semicolon", "tab"])
def test_separators_are_found_by_the_first_line(separator):
    text = f"\ufeffprompt{separator}priority\r\na fox{separator}2\r\n"

    assert prompts(text) == [(2, "a fox")]


def test_lines_are_counted_past_empty_rows_and_quoted_line_ends():
    text = 'prompt,priority\r\n\r\n"a\r\nfox",1\r\n,\r\na hen,x\r\n"b ""c""",2'

    assert faults(text) == [
        "Line 6, priority: A whole number from -32000 to 32000 is needed.",
    ]
    assert prompts(text.replace("x", "3")) == [(3, "a\nfo3"), (6, "a hen"), (7, 'b "c"')]


@pytest.mark.parametrize("cell", ["=1+1", "@x", "+1", "-1", "'a"])
def test_a_formula_is_text(cell):
    assert prompts(f"prompt\n{cell}") == [(2, cell)]


def test_all_that_is_wrong_is_told_with_its_line():
    text = (
        'prompt,kind,params,priority\na fox,hologram,"{""seed"": }",99999\n,image,,\nb,image,[],\n'
    )

    assert faults(text) == [
        "Line 2, params: Not valid JSON at line 1, column 10: Expecting value.",
        "Line 2, kind: Unknown kind; choose one of: image, video, avatar, avatar_video.",
        "Line 2, priority: A whole number from -32000 to 32000 is needed.",
        "Line 3, prompt: Say what the picture or clip should show.",
        'Line 4, params: A JSON object is needed, for instance {"seed": 7}.',
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("promt\na fox", "Line 1: The first line names the columns; not known: 'promt'. Known are"),
        ("\nkind\nimage", "Line 2: A column named prompt is needed."),
        ("prompt,prompt\na,b", "Line 1: A column is named twice."),
        ("prompt\na fox, red", "Line 2: More cells than columns: text that holds a separator"),
        ('prompt\na\n"b', "Line 3: Not a table from here on: unexpected end of data."),
        ('prompt\n"a"b\nc', "Line 2: Not a table from here on: ',' expected after '\"'."),
        (f'prompt\n"{"x" * 140_000}"', "Line 2: Not a table from here on: field larger than"),
    ],
    ids=["unknown", "no prompt", "twice", "cells", "open quote", "stray quote", "huge"],
)
def test_a_table_that_is_none_says_why(text, words):
    [fault] = faults(text)

    assert fault.startswith(words)


# --- JSON lines ---------------------------------------------------------------------------


def test_each_line_is_an_object():
    text = '\ufeff{"prompt": "a fox", "params": {"seed": 7}}\r\n\r\n{"prompt": "a\\nhen"}'

    assert prompts(text, Layout.JSON_LINES) == [(1, "a fox"), (3, "a\nhen")]
    assert found(text, Layout.JSON_LINES)[0][1]["params"] == {"seed": 7}


def test_a_line_that_is_no_request_is_named():
    text = '{"prompt": "a"}\n{"prompt" 1}\n[1]\n{"size": 1, "prompt": "a"}\n{"prompt": 7}\n{}'

    assert faults(text, Layout.JSON_LINES) == [
        "Line 2: Not valid JSON at line 1, column 11: Expecting ':' delimiter.",
        'Line 3: A JSON object is needed: {"prompt": "A boat"}.',
        "Line 4: Unknown fields: 'size'. "
        "Known are: prompt, kind, model, params, priority, reference, avatar_handle, image_url, "
        "ethnicity, sex, age, quality, scene_prompt, scene_image_url, product_image, aspect_ratio, "
        "title, resolution.",
        "Line 5, prompt: Text is needed.",
        "Line 6, prompt: Say what the picture or clip should show.",
    ]


# --- Repeats and limits -------------------------------------------------------------------


def test_the_same_request_twice_is_pointed_out_and_no_fault():
    sheet = read("a fox\na hen\n\na fox\na fox", Layout.LINES, COMMON)

    assert sheet.repeats == [(4, 1), (5, 1)]
    assert (len(sheet.requests), sheet.faults) == (4, [])


def test_a_reference_twice_is_a_fault():
    assert faults("prompt,reference\na,r1\nb,r2\nc,r1\n") == [
        "Line 4, reference: Line 2 has this reference too; each render needs its own."
    ]


def test_more_than_the_limit_is_a_fault(monkeypatch):
    monkeypatch.setattr(import_files, "MAX_RENDERS", 2)

    assert faults("a\n\nb\nc\nd", Layout.LINES) == [
        "Line 4: More than 2 renders; add the rest afterwards."
    ]
    assert len(faults("x\n" * 50, Layout.JSON_LINES)) == 3


# --- Files --------------------------------------------------------------------------------


def test_a_file_is_read_by_its_name():
    assert layout_of("My List.CSV") == layout_of("a.tsv") == Layout.TABLE
    assert layout_of("a.b.jsonl") == Layout.JSON_LINES
    with pytest.raises(Unreadable, match="must end in one of"):
        layout_of("list.xlsx")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("prompt\nA café\n".encode("latin-1"), "not UTF-8: line 2 holds"),
        ("prompt\na".encode("utf-16"), "not UTF-8: line 1 holds"),
        ("prompt\na".encode("utf-16-le"), "NUL characters"),
    ],
    ids=["Latin 1", "UTF-16", "UTF-16 without a mark"],
)
def test_other_encodings_are_refused_with_what_to_do(data, words):
    with pytest.raises(Unreadable, match=words):
        decode(data)


def test_a_byte_order_mark_is_no_text():
    assert decode("\ufeffprompt".encode()) == "prompt"


# --- Fields of one kind's own -------------------------------------------------------------

PHOTO = "https://example.com/mara.png"


def test_the_kinds_own_fields_may_be_columns():
    text = (
        "prompt,kind,avatar_handle,image_url,ethnicity,sex,age,scene_prompt,quality,params\n"
        f",avatar,@mara,{PHOTO},,,,,,\n"
        ",avatar,nora,,White,male, 42 ,,,\n"
        'Hello!,avatar_video,mara,,,,,A bakery,max,"{""locale"": ""de""}"\n'
        "a fox,,,,,,,,,\n"
    )
    requests = [request for _, request in found(text)]

    assert [request["params"] for request in requests] == [
        {"avatar_handle": "mara", "image_url": PHOTO},
        {"avatar_handle": "nora", "ethnicity": "White", "sex": "male", "age": 42},
        {
            "locale": "de",
            "avatar_handle": "mara",
            "scene": {"type": "prompt", "prompt": "A bakery"},
            "quality": "max",
        },
        {},
    ]
    assert [request["model"] for request in requests] == ["", "", "", "sume/auto"]


def test_in_json_they_stand_beside_params_or_inside():
    scene = {"type": "photo", "image_url": PHOTO}
    base = {"prompt": "Hello!", "kind": "avatar_video"}
    lines = [
        {**base, "avatar_handle": "mara", "scene": scene, "resolution": "720p"},
        {**base, "params": {"avatar_handle": "mara", "scene": scene, "resolution": "720p"}},
    ]
    text = "\n".join(json.dumps(line) for line in lines)
    [(_, first), (_, second)] = found(text, Layout.JSON_LINES)

    assert first == second


def test_what_a_line_says_itself_counts_more_than_what_holds_for_all():
    common = {"kind": "avatar_video", "model": "sume/x", "params": {"avatar_handle": "nora"}}
    sheet = read("prompt,avatar_handle\na,mara\nb,\n", Layout.TABLE, common)

    assert sheet.faults == []
    assert [one["params"]["avatar_handle"] for _, one in sheet.requests] == ["mara", "nora"]


def test_a_wrong_field_is_told_with_its_line_and_column():
    text = (
        "prompt,kind,avatar_handle,age,quality,scene_prompt,scene_image_url,params\n"
        "a,avatar_video,,,,,,\n"
        "a,avatar_video,mara,,best,,,\n"
        ",avatar,mara,old,,,,\n"
        "a,image,mara,,,,,\n"
        f"a,avatar_video,mara,,,x,{PHOTO},\n"
        "a,avatar_video,mara,,,,kitchen,\n"
        'a,avatar_video,mara,,,,,"{""avatar_handle"": ""mara""}"\n'
        ",avatar,mara,,,,,\n"
    )

    assert [fault.split(": ")[0] for fault in faults(text)] == [
        "Line 2, avatar_handle",
        "Line 3, quality",
        "Line 4, age",
        "Line 4, ethnicity",
        "Line 5, avatar_handle",
        "Line 6, scene_image_url",
        "Line 7, scene_image_url",
        "Line 8, avatar_handle",
        "Line 9, prompt",
    ]
    assert "avatar_handle is not part of a request of kind image." in faults(text)[4]
    assert "Give this or Scene, described, not both." in faults(text)[5]


def test_a_model_that_a_line_names_itself_is_refused_where_the_kind_has_none():
    [fault] = faults("prompt,kind,avatar_handle,model\na,avatar_video,mara,sume/x\n")

    assert fault.startswith("Line 2, model: Kind avatar_video takes no model")
