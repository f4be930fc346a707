"""The editor of JSON, in the form of the pages; the admin's is the same."""

from playwright.sync_api import Page, expect

from tests.browser.pages import FORM, WRONG_JSON
from tests.browser.site import Site


def test_it_marks_the_line_that_is_wrong_and_lets_go_of_the_keyboard(
    site: Site, owners_page: Page, owner
) -> None:
    page = owners_page
    page.goto(FORM)
    page.get_by_text("More", exact=True).click()
    editor = page.get_by_role("textbox", name="Further fields")
    marked = page.locator(".json-editor-lines .json-editor-wrong")

    editor.fill(WRONG_JSON)
    expect(marked).to_have_text("3")
    expect(page.get_by_role("status").filter(has_text="Line 3, column 11")).to_be_visible()
    editor.fill(WRONG_JSON.replace("seven", "7"))
    expect(marked).to_have_count(0)
    expect(page.get_by_text("Valid JSON.")).to_be_visible()

    editor.press("Tab")
    expect(editor).not_to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(editor).to_be_focused()
    expect(editor).to_have_value(WRONG_JSON.replace("seven", "7"))

    # The server's word: the form comes back open, the caret where it is wrong.
    page.get_by_role("textbox", name="Prompt").fill("A pier in fog")
    editor.fill(WRONG_JSON)
    page.get_by_role("button", name="Render", exact=True).click()
    expect(marked).to_have_text("3")
    expect(editor).to_be_focused()
    assert editor.evaluate("area => area.selectionStart") == WRONG_JSON.index("seven")
    assert site.renders(created_by=owner) == []
