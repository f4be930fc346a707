"""The pages of renders in the admin say where renders go, and whether that bills."""

from html import unescape

import pytest

from renders.services import create_render

pytestmark = pytest.mark.django_db
RENDERS = "/admin/renders/renderjob/"


@pytest.mark.parametrize("path", ["", "add/", "{pk}/change/", "add-many/"])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://api.sume.com", "Renders go to api.sume.com: every render is billed."),
        ("http://127.0.0.1:8999", "Renders go to 127.0.0.1:8999, a stand-in on this machine"),
        ("https://sume.example.com", "Renders go to sume.example.com, not Sume's own host: ask"),
    ],
)
def test_the_host_is_told(admin_client, settings, path, url, words):
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": url}
    render = create_render("A boat")

    html = unescape(admin_client.get(RENDERS + path.format(pk=render.pk)).content.decode())

    assert html.count("Renders go to") == 1
    assert words in html


def test_before_a_retry_the_host_is_told(admin_client, settings, ended):
    settings.RENDERS = {**settings.RENDERS, "BASE_URL": "https://api.sume.com"}
    render = ended("failed")

    data = {"action": "retry", "_selected_action": [str(render.pk)]}
    html = admin_client.post(RENDERS, data).content.decode()

    assert "billed again" in html
    assert "Renders go to api.sume.com: every render is billed." in html


def test_the_hosts_of_all_workspaces_are_told(admin_client, settings):
    acme = {"BASE_URL": "http://127.0.0.1:8999", "API_KEY": "sk"}
    settings.RENDERS = {
        **settings.RENDERS,
        "BASE_URL": "https://api.sume.com",
        "WORKSPACES": {"acme": acme},
    }

    html = admin_client.get(RENDERS).content.decode()

    assert "Renders go to api.sume.com (workspace default): every render is billed." in html
    assert "Renders go to 127.0.0.1:8999 (workspace acme), a stand-in" in html
