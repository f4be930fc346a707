"""What all pages share: in the footer, staff read where renders go, and whether that bills."""

import re
from html import unescape

import pytest
from django.template.loader import render_to_string

from tests.unit.views.support import ended

pytestmark = pytest.mark.django_db
PAGES = ["/renders/", "/renders/new/", "/renders/charts/", "/renders/{pk}/", "/renders/nowhere/"]
SUME = "https://api.sume.com"
BILLED = "Renders go to api.sume.com: every render is billed."


def foot(page):
    """The lines at the foot of a page."""
    [text] = re.findall(r'<footer class="foot">(.*?)</footer>', page.text, re.DOTALL)
    return [unescape(line) for line in re.findall(r"<p\b[^>]*>(.*?)</p>", text)]


@pytest.mark.parametrize("path", PAGES)
def test_staff_read_where_renders_go_on_every_page(client, staff, settings, path):
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": SUME}
    row = ended(staff)
    client.force_login(staff)

    assert foot(client.get(path.format(pk=row.pk))) == [BILLED]


@pytest.mark.parametrize("path", PAGES)
def test_others_do_not(page, ann, path):
    row = ended(ann)

    html = page.get(path.format(pk=row.pk)).text

    assert "Renders go to" not in html and "<footer" not in html


def test_each_host_has_a_line_and_no_password_is_shown(client, staff, settings):
    acme = {"BASE_URL": "http://ann:s3cret@127.0.0.1:8999", "API_KEY": "sk-canary"}
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": SUME, "WORKSPACES": {"acme": acme}}
    client.force_login(staff)
    page = client.get("/renders/")

    assert [line.partition(")")[0] for line in foot(page)] == [
        "Renders go to api.sume.com (workspace default",
        "Renders go to 127.0.0.1:8999 (workspace acme",
    ]
    assert "s3cret" not in page.text and "canary" not in page.text


def test_it_takes_no_query_however_many_workspaces_there_are(settings, django_assert_num_queries):
    acme = {f"acme-{number}": {"BASE_URL": f"http://10.0.0.{number}"} for number in range(9)}
    settings.RENDERS = {"BASE_URL": SUME, "WORKSPACES": acme}

    with django_assert_num_queries(0):
        html = render_to_string("renders/parts/destinations.html")

    assert html.count("<p") == 10


def test_settings_that_cannot_be_read_leave_it_empty(settings):
    settings.RENDERS = {"WORKSPACES": {"default": {}}}

    assert "<p" not in render_to_string("renders/parts/destinations.html")
