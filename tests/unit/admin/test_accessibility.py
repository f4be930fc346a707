"""The admin's pages can be read by those who do not see them: names, headings, ids."""

from collections import Counter
from html.parser import HTMLParser

import pytest

from renders.services import create_render
from renders.states import Status

pytestmark = pytest.mark.django_db
LIST = "/admin/renders/renderjob/"
IMAGE = {"type": "image", "content_type": "image/png", "file": "a.png"}
CLIP = {"type": "video", "content_type": "video/mp4", "file": "a.mp4"}


class Page(HTMLParser):
    """What a page holds that needs a name."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: Counter[str] = Counter()
        self.named: set[str] = set()
        self.fields: list[dict[str, str | None]] = []
        self.references: set[str] = set()
        self.nameless: list[str] = []
        self.labels = 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        facts = dict(attrs)
        if facts.get("id"):
            self.ids[facts["id"]] += 1
        for name in ("aria-describedby", "aria-labelledby"):
            self.references |= set((facts.get(name) or "").split())
        if tag == "label":
            self.labels += 1
            self.named.add(facts.get("for") or "")
        if tag in {"input", "select", "textarea"} and facts.get("type") not in {"hidden", "submit"}:
            self.fields.append(facts | {"inside": "label" if self.labels else None})
        if (tag == "img" and facts.get("alt") is None) or (
            tag == "video" and not facts.get("aria-label")
        ):
            self.nameless.append(tag)
        if tag == "th" and facts.get("scope") not in {"col", "row"} and "class" not in facts:
            self.nameless.append("th")

    def handle_endtag(self, tag):
        self.labels -= tag == "label"

    def faults(self) -> list[str]:
        found = [f"id {name} twice" for name, count in self.ids.items() if count > 1]
        found += [f"no element {name}" for name in self.references - set(self.ids)]
        found += [
            f"no name: {field}"
            for field in self.fields
            if not (
                field["inside"]
                or field.get("aria-label")
                or field.get("aria-labelledby")
                or field.get("id") in self.named
            )
        ]
        return found + [f"{tag} without a name" for tag in self.nameless]


@pytest.fixture
def pages(admin_client, sent, ended):
    create_render("Pending")
    failed = ended(Status.FAILED, code="bad_prompt")
    done = ended(artifacts=[IMAGE, CLIP])
    return {
        "list": LIST,
        "add": f"{LIST}add/",
        "failed": f"{LIST}{failed.pk}/change/",
        "done": f"{LIST}{done.pk}/change/",
        "running": f"{LIST}{sent().pk}/change/",
    }


def test_the_search_for_faults_finds_them():
    page = Page('<i id="a"></i><i id="a"></i><input aria-describedby="b"><img src="x"><th>c</th>')

    assert len(page.faults()) == 5


def test_every_field_has_a_name_and_every_id_is_one_of_its_kind(admin_client, pages):
    for name, url in pages.items():
        assert Page(admin_client.get(url).text).faults() == [], name


def test_so_it_is_with_a_form_that_comes_back(admin_client, pages):
    data = {"params": "{", "kind": "image", "prompt": "", "model": "", "priority": "x"}
    html = admin_client.post(pages["add"], data).text

    assert "Not valid JSON" in html
    assert Page(html).faults() == []
