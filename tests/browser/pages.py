"""Every page there is, in one list: for the tests of looks, and for the screenshots."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from playwright.sync_api import BrowserContext, Page

from tests.browser.scene import Scene
from tests.browser.site import Site

# Where the pages' own form is.
FORM = "/renders/new/"

OWNER, ADMIN, STRANGER, FLOWER, NOBODY = "user", "admin", "stranger", "flower", ""


@dataclass(frozen=True)
class Sight:
    """One page as one person sees it.

    `path` may name renders of the scene. `then` is what the person does there to see it.
    `others` is the part that is not ours to mend, a CSS selector. `picture` is the file in
    `.github` that the README shows.
    """

    name: str
    path: str
    who: str
    then: Callable[[Page], None] | None = None
    others: str = ""
    picture: str = ""


ADD = "/admin/renders/renderjob/add/"
ADD_MANY = "/admin/renders/renderjob/add-many/"
AVATARS = "/admin/renders/avatar/"
TOKENS = "/admin/renders/apitoken/"
WRONG_JSON = '{\n  "aspect_ratio": "16:9",\n  "seed": seven\n}'


def send_wrong_json(page: Page) -> None:
    """Fill in the form of one render, and have it refused."""
    page.get_by_role("textbox", name="Prompt").fill("A harbour in the rain")
    # By a script: the field may be folded away.
    page.locator("textarea[name=params]").evaluate(
        "(area, text) => { area.value = text; area.form.requestSubmit() }", WRONG_JSON
    )
    page.locator(".json-editor-wrong").first.wait_for()


def send_wrong_scene(page: Page) -> None:
    """Fill in an avatar video, and have it refused."""
    page.get_by_role("textbox", name="Script").fill("Welcome!")
    page.get_by_role("textbox", name="Scene, as a photo").fill("my kitchen")
    page.get_by_role("button", name="Render", exact=True).click()
    page.get_by_text("A public address is needed").wait_for()


def preview(page: Page, name: str, text: str) -> None:
    """Choose a file of many renders, and go on."""
    file = {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    page.locator("input[type=file]").set_input_files([file])
    page.get_by_role("button", name="Preview").click()


def preview_faults(page: Page) -> None:
    """A file in which something is wrong."""
    lines = '{"prompt": "A pier in fog"}', '{"prompt": ""}', '{"prompt": "A kite", "kind": "song"}'
    preview(page, "scenes.jsonl", "\n".join(lines))
    page.get_by_text("Nothing was added").wait_for()


def preview_many(page: Page) -> None:
    """A table of renders, of which two are the same."""
    rows = [
        "prompt,kind,priority,params",
        "A pier in fog,image,0,",
        "A kite above a wheat field,image,5,",
        'A train crossing a viaduct,video,0,"{""aspect_ratio"": ""16:9""}"',
        "A pier in fog,image,0,",
    ]
    preview(page, "scenes.csv", "\n".join(rows))
    page.get_by_text("would be added").wait_for()


def preview_taken(page: Page) -> None:
    """A list whose reference another one took meanwhile."""
    line = '{"prompt": "A pier in fog", "reference": "pier"}'
    preview(page, "first.jsonl", line)
    first = page.url
    page.goto(page.url.split("/add-many/")[0] + "/add-many/")
    preview(page, "second.jsonl", line.replace("fog", "snow"))
    page.get_by_role("button", name="Add 1 render").click()
    page.goto(first)
    page.get_by_text("Nothing was added").wait_for()


def run_action(page: Page, action: str) -> None:
    """Do this with what is selected in a list of the admin."""
    page.get_by_label("Action:").select_option(action)
    page.get_by_role("button", name=re.compile("^(Run|Go)$")).click()  # Django 6, Django 5


def choose_for_retry(page: Page) -> None:
    """Select what is shown, and choose to retry it."""
    page.locator("#action-toggle").check()
    run_action(page, "retry")
    page.get_by_role("button", name="Retry").wait_for()


def make_token(page: Page, name: str = "Poster shop") -> None:
    """The one page that shows it."""
    page.get_by_role("textbox", name="Name").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("It is shown this once").wait_for()


SIGHTS = [
    Sight("login", "/accounts/login/", NOBODY),
    Sight("gallery", "/renders/", OWNER, picture="gallery.png"),
    Sight("gallery-empty", "/renders/", STRANGER),
    Sight("gallery-filtered", "/renders/?kind=avatar&since=2026-01-01", OWNER),
    Sight("new", FORM, OWNER),
    Sight("new-avatar", FORM + "?kind=avatar", OWNER),
    Sight("new-avatar-video", FORM + "?kind=avatar_video", OWNER, send_wrong_scene),
    Sight("new-from", FORM + "?from={video}", OWNER),
    Sight("new-refused", FORM, OWNER, send_wrong_json),
    Sight("charts", "/renders/charts/", ADMIN),
    Sight("charts-empty", "/renders/charts/", STRANGER),
    Sight("completed", "/renders/{completed}/", OWNER, picture="render.png"),
    Sight("video", "/renders/{video}/", OWNER),
    Sight("failed", "/renders/{failed}/", OWNER),
    Sight("retry", "/renders/{failed}/retry/", OWNER),
    Sight("canceled", "/renders/{canceled}/", OWNER),
    Sight("running", "/renders/{running}/", OWNER),
    Sight("admin-index", "/admin/", ADMIN),
    Sight(
        "admin-list",
        "/admin/renders/renderjob/",
        ADMIN,
        others="#changelist-search",  # Django's search has no label
        picture="admin.png",
    ),
    Sight("admin-add", ADD, ADMIN),
    Sight("admin-add-avatar-video", ADD + "?kind=avatar_video", ADMIN),
    Sight("admin-avatars", AVATARS, ADMIN, others="#changelist-search"),
    Sight("admin-add-refused", ADD, ADMIN, send_wrong_json),
    Sight("admin-many", ADD_MANY, ADMIN),
    Sight("admin-many-faults", ADD_MANY, ADMIN, preview_faults),
    Sight("admin-many-preview", ADD_MANY, ADMIN, preview_many),
    Sight("admin-many-taken", ADD_MANY, ADMIN, preview_taken),
    Sight("admin-retry", "/admin/renders/renderjob/?q=harbour", ADMIN, choose_for_retry),
    Sight("admin-token", TOKENS + "add/", ADMIN, make_token),
    Sight("admin-tokens", TOKENS, ADMIN, others="#changelist-search"),
    Sight("admin-render", "/admin/renders/renderjob/{failed}/change/", ADMIN),
    Sight("admin-gate", "/admin/renders/gate/", ADMIN),
]
# Not ours, but in the README.
FLOWERS = [
    Sight("flower-workers", "/workers", FLOWER),
    Sight("flower-tasks", "/tasks", FLOWER, picture="flower.png"),
]


def log_in(context: BrowserContext, site: Site, user: object) -> None:
    """Let the browser be one in which this user has logged in."""
    cookie = {"name": "sessionid", "value": site.session_of(user), "url": site.url}
    context.add_cookies([cookie])


# Also those that would wait until somebody scrolls to them.
ALL_IMAGES = """() => Promise.all([...document.images].map(image => {
  image.loading = "eager";
  return image.decode().catch(() => null);
}))"""

# A colour that is still on its way to another one is neither.
AT_REST = """() => document.getAnimations().forEach(animation => {
  try { animation.finish() } catch { /* it goes on for ever */ }
})"""


def show(page: Page, site: Site, scene: Scene, sight: Sight) -> None:
    """Go there, and let the page stay as it is. For Flower the browser must know its password."""
    if sight.who == FLOWER:
        page.goto(site.flower_url + sight.path, wait_until="networkidle")
        return
    if sight.who:
        log_in(page.context, site, getattr(scene, sight.who))
    page.goto(site.url + scene.path(sight.path))
    if sight.then:
        sight.then(page)
        page.wait_for_load_state()
    page.evaluate(ALL_IMAGES)


def set_scheme(page: Page, scheme: str) -> None:
    """Let the person prefer `light` or `dark`."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate(AT_REST)
