"""Pages follow a row, so every render is on one page and on no other."""

import pytest
from django.utils import timezone

from renders.models import RenderJob
from renders.presentation.paging import count_of, page_of
from renders.services import create_render

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("same_moment", [False, True])
def test_all_rows_are_there_once_forth_and_back(same_moment):
    for number in range(7):
        create_render(f"Boat {number}")
    if same_moment:
        RenderJob.objects.update(created_at=timezone.now())
    everything = list(RenderJob.objects.all())

    pages = [page_of(RenderJob.objects.all(), 3)]
    while pages[-1].older:
        pages.append(page_of(RenderJob.objects.all(), 3, before=pages[-1].older))
    assert [row for page in pages for row in page.rows] == everything
    assert [len(page.rows) for page in pages] == [3, 3, 1]
    assert not pages[0].newer

    back = page_of(RenderJob.objects.all(), 3, after=pages[2].newer)
    assert back.rows == pages[1].rows
    assert page_of(RenderJob.objects.all(), 3, after=back.newer) == pages[0]


def test_the_place_of_a_deleted_row_stays_known():
    rows = [create_render(f"Boat {number}") for number in range(4)]
    mark = page_of(RenderJob.objects.all(), 2).older
    rows[2].delete()

    assert page_of(RenderJob.objects.all(), 2, before=mark).rows == [rows[1], rows[0]]


def test_behind_the_last_row_there_is_nothing_older():
    create_render("A boat")
    mark = "1." + "0" * 32
    page = page_of(RenderJob.objects.all(), 1, before=mark)

    assert (page.rows, page.newer, page.older) == ([], mark, "")


@pytest.mark.parametrize("mark", ["", "x", "1", "1.x", "9" * 40 + ".0", "-1.x.y"])
def test_a_mark_that_is_none_gives_the_first_page(mark):
    row = create_render("A boat")

    assert page_of(RenderJob.objects.all(), 2, before=mark, after=mark).rows == [row]


def test_counting_stops_in_time(monkeypatch):
    monkeypatch.setattr("renders.presentation.paging.MOST_COUNTED", 2)
    for expected in ("1", "2", "2+", "2+"):
        create_render("A boat")
        assert count_of(RenderJob.objects.all()) == expected
