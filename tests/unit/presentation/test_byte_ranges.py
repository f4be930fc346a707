"""Parts of files, as players ask for them."""

import io

import pytest
from django.test import RequestFactory

from renders.presentation import byte_ranges
from renders.presentation.byte_ranges import Unsatisfiable, find

DATA = bytes(range(256)) * 600  # more than two chunks
SIZE = len(DATA)
ETAG = '"abc"'
pytestmark = pytest.mark.django_db  # a reply that is closed looks after connections


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bytes=0-", (0, 10)),
        ("bytes=0-0", (0, 1)),
        ("bytes=2-4", (2, 3)),
        ("bytes=9-", (9, 1)),
        ("bytes=5-99", (5, 5)),
        ("bytes=5-999999999999999999", (5, 5)),
        ("bytes=-3", (7, 3)),
        ("bytes=-99", (0, 10)),
        ("Bytes = 1 - 2", (1, 2)),
    ],
)
def test_a_range_is_its_first_byte_and_a_length(header, found):
    assert find(header, 10) == found


@pytest.mark.parametrize(
    "header",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=-",
        "bytes=4-2",
        "bytes=a-b",
        "bytes=0-1,4-5",
        "bytes=--1",
        "bytes=1-2-3",
        "bytes=\u0661-\u0662",
        "bytes=" + "9" * 5000 + "-",
        "items=0-1",
    ],
    ids=ascii,
)
def test_what_is_not_understood_means_the_whole_file(header):
    assert find(header, 10) is None


@pytest.mark.parametrize(
    ("header", "size"), [("bytes=10-", 10), ("bytes=99-100", 10), ("bytes=-0", 10), ("bytes=0-", 0)]
)
def test_a_part_that_the_file_does_not_have_is_an_error(header, size):
    with pytest.raises(Unsatisfiable):
        find(header, size)


def replied(method="GET", etag=ETAG, **headers):
    file = io.BytesIO(DATA)
    request = RequestFactory().generic(method, "/", headers=headers)
    return byte_ranges.reply(request, file, SIZE, etag), file


def test_the_whole_file_says_that_parts_can_be_had():
    response, file = replied()

    assert response.status_code == 200
    assert response["Accept-Ranges"] == "bytes"
    assert response["Content-Length"] == str(SIZE)
    assert response.getvalue() == DATA
    response.close()
    assert file.closed


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-1", 0, 1),
        ("bytes=100-", 100, SIZE - 1),
        ("bytes=65530-131080", 65_530, 131_080),
        ("bytes=-7", SIZE - 7, SIZE - 1),
    ],
)
def test_a_part_is_sent_as_a_part(header, first, last):
    response, file = replied(Range=header)

    assert response.status_code == 206
    assert response["Content-Range"] == f"bytes {first}-{last}/{SIZE}"
    assert response["Content-Length"] == str(last - first + 1)
    assert response.getvalue() == DATA[first : last + 1]
    response.close()
    assert file.closed


def test_a_part_that_is_not_there_is_refused_with_the_size():
    response, file = replied(Range=f"bytes={SIZE}-")

    assert response.status_code == 416
    assert response["Content-Range"] == f"bytes */{SIZE}"
    assert file.closed


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Range": ETAG}, 206),
        ({"If-Range": '"other"'}, 200),
        ({"If-Range": "Mon, 01 Jan 2024 00:00:00 GMT"}, 200),
    ],
    ids=["same", "other", "date"],
)
def test_a_part_is_sent_only_of_the_file_that_was_begun(headers, status):
    assert replied(Range="bytes=0-1", **headers)[0].status_code == status


def test_a_question_for_the_head_alone_has_no_parts():
    response, _ = replied("HEAD", Range="bytes=0-1")

    assert response.status_code == 200
    assert response["Content-Length"] == str(SIZE)


def test_a_reply_that_is_not_read_closes_the_file():
    response, file = replied()

    response.close()

    assert file.closed


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, None),
        ({"If-None-Match": ETAG}, 304),
        ({"If-None-Match": f'W/{ETAG}, "x"'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"x"'}, None),
        ({"If-Match": '"x"'}, 412),
    ],
    ids=["nothing", "known", "known weakly", "any", "another", "wants another"],
)
def test_what_a_browser_has_is_not_sent_again(headers, status):
    response = byte_ranges.not_modified(RequestFactory().get("/", headers=headers), ETAG)

    assert (response.status_code if response else None) == status


def test_a_file_without_a_checksum_is_sent_each_time():
    request = RequestFactory().get("/", headers={"If-None-Match": "*"})

    assert byte_ranges.not_modified(request, "") is None
