"""A prompt becomes a picture on the page; however often a button is pressed, once."""

import re

import pytest
from playwright.sync_api import Locator, Page, Request, expect

from tests.browser.pages import FORM
from tests.browser.site import Site

# A finished picture comes from the app's own address for stored files.
PICTURE = 'img[src*="/artifacts/"]'


class AdminForm:
    """The form of the admin."""

    def __init__(self, page: Page) -> None:
        page.goto("/admin/renders/renderjob/add/")
        self.prompt = page.get_by_role("textbox", name="Prompt")
        self.button = page.get_by_role("button", name="Save", exact=True)


class PagesForm:
    """The form of the pages."""

    def __init__(self, page: Page) -> None:
        page.goto(FORM)
        self.prompt = page.get_by_role("textbox", name="Prompt")
        self.button = page.get_by_role("button", name="Render", exact=True)


both_forms = pytest.mark.parametrize("form_of", [AdminForm, PagesForm])


def posts(page: Page) -> list[Request]:
    """The forms that this page sends from now on."""
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request) if request.method == "POST" else None)
    return sent


def assert_one_render(site: Site, prompt: str) -> None:
    [render] = site.until_handled(prompt=prompt)
    assert render.status == "completed"
    assert site.bills_of(render) == 1


def picture_on(page: Page) -> Locator:
    """The finished picture, once the browser has really drawn it."""
    picture = page.locator(PICTURE).first
    expect(picture).to_be_visible()
    expect(picture).not_to_have_js_property("naturalWidth", 0)
    return picture


def test_the_picture_of_a_prompt_added_in_the_admin_appears(site: Site, admins_page: Page) -> None:
    form = AdminForm(admins_page)
    form.prompt.fill("An owl in the admin")
    form.button.click()

    expect(admins_page.get_by_text("An owl in the admin").first).to_be_visible()
    assert_one_render(site, "An owl in the admin")
    admins_page.reload()
    picture_on(admins_page)


def test_the_gallery_shows_by_itself_what_becomes_of_a_render(
    site: Site, owners_page: Page, owner
) -> None:
    with site.clock.stopped():
        form = PagesForm(owners_page)
        form.prompt.fill("An owl in the gallery")
        form.button.click()
        expect(owners_page.get_by_text("An owl in the gallery").first).to_be_visible()
        owners_page.goto("/renders/")
        card = owners_page.get_by_role("listitem").filter(has_text="An owl in the gallery")
        expect(card).to_be_visible()
        site.until(lambda: site.renders(created_by=owner, status="submitted"), "The submit")
        expect(card.get_by_text("Submitted", exact=True)).to_be_visible()
        expect(owners_page.locator(PICTURE)).to_have_count(0)

    expect(card.get_by_text("Completed", exact=True)).to_be_visible()
    picture_on(owners_page)
    assert_one_render(site, "An owl in the gallery")


@both_forms
def test_a_double_click_adds_one_render(site: Site, admins_page: Page, form_of) -> None:
    prompt = f"A double click on the {form_of.__name__}"
    form = form_of(admins_page)
    form.prompt.fill(prompt)
    sent = posts(admins_page)
    form.button.dblclick()

    expect(admins_page.get_by_text(prompt).first).to_be_visible()
    assert sent
    assert_one_render(site, prompt)


@both_forms
def test_a_form_that_the_browser_sends_again_adds_one_render(
    site: Site, admins_page: Page, form_of
) -> None:
    prompt = f"Sent again by the {form_of.__name__}"
    form = form_of(admins_page)
    form.prompt.fill(prompt)
    sent = posts(admins_page)
    form.button.click()
    expect(admins_page.get_by_text(prompt).first).to_be_visible()
    admins_page.reload()

    answer = admins_page.request.fetch(sent[0])

    assert answer.ok
    assert "before" in answer.text(), "nobody is told that nothing was added"
    assert_one_render(site, prompt)


@both_forms
def test_two_tabs_with_the_same_form_add_one_render(site: Site, admins_page: Page, form_of) -> None:
    prompt = f"Two tabs of the {form_of.__name__}"
    second_page = admins_page.context.new_page()
    first, second = form_of(admins_page), form_of(second_page)
    first.prompt.fill(prompt)
    second.prompt.fill(prompt)
    # A tab that was duplicated holds the same hidden values.
    token = admins_page.locator("input[name=token]").input_value()
    second_page.locator("input[name=token]").evaluate(
        "(input, value) => input.value = value", token
    )
    first.button.click()
    expect(admins_page.get_by_text(prompt).first).to_be_visible()

    second.button.click()

    expect(second_page.get_by_text("before").first).to_be_visible()
    assert_one_render(site, prompt)


SHOWN = """form => [...form.elements].filter(one => one.name && one.type != "hidden"
  && one.type != "radio" && one.type != "submit" && one.checkVisibility()).map(one => one.name)"""
AVATAR = ["avatar_handle", "prompt", "image_url", "ethnicity", "sex", "age"]
CLIP = ["avatar_handle", "prompt", "quality", "scene_prompt", "scene_image_url"]


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without"])
@pytest.mark.parametrize(
    ("kind", "label", "fields"),
    [
        ("Image", "Prompt", ["prompt"]),
        ("Video", "Prompt", ["prompt"]),
        ("Avatar", "Description", AVATAR),
        ("Avatar video", "Script", CLIP),
    ],
)
def test_the_page_asks_for_what_the_kind_needs_and_for_nothing_else(
    open_page, owner, kind: str, label: str, fields: list[str], script: bool
) -> None:
    page = open_page(owner, java_script_enabled=script)
    page.goto(FORM)
    page.get_by_role("radio", name=re.compile(f"^{kind} [A-Z]")).check()

    expect(page.get_by_role("textbox", name=label, exact=True)).to_be_visible()
    assert page.locator("form.sheet").evaluate(SHOWN) == fields


def test_an_avatar_video_is_added_and_what_was_typed_for_a_picture_is_not_sent(
    site: Site, admins_page: Page, admin
) -> None:
    page = admins_page
    page.goto(FORM)
    page.locator("summary").click()
    page.get_by_role("textbox", name="Model").fill("sume/fine")
    page.get_by_role("radio", name=re.compile("^Avatar video ")).check()
    page.get_by_role("textbox", name="Avatar", exact=True).fill("@mara")
    page.get_by_role("textbox", name="Script").fill("Welcome!")
    page.get_by_role("textbox", name="Scene, described").fill("A bakery")
    page.get_by_role("button", name="Render", exact=True).click()

    expect(page.get_by_text("Added: avatar video")).to_be_visible()
    [row] = site.renders(created_by=admin)
    scene = {"type": "prompt", "prompt": "A bakery"}
    assert (row.model, row.params) == ("", {"avatar_handle": "mara", "scene": scene})
