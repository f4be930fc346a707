"""Every page there is, in one list: for the tests of looks, and for the screenshots."""

from dataclasses import dataclass

from playwright.sync_api import BrowserContext, Page

from tests.browser.scene import Scene
from tests.browser.site import Site

# Where the pages' own form is.
FORM = "/renders/?add"

OWNER, ADMIN, STRANGER, FLOWER, NOBODY = "user", "admin", "stranger", "flower", ""


@dataclass(frozen=True)
class Sight:
    """One page as one person sees it.

    `path` may name renders of the scene. `others` is the part that is not ours to mend, a CSS
    selector; `forgiven` are rules of axe that the page breaks for a reason. `picture` is the
    file in `.github` that the README shows.
    """

    name: str
    path: str
    who: str
    others: str = ""
    forgiven: tuple[str, ...] = ()
    picture: str = ""


# A page without scripts shows in no other way what is new.
REFRESHED = ("meta-refresh",)

SIGHTS = [
    Sight("login", "/accounts/login/", NOBODY),
    Sight("gallery", "/renders/", OWNER, forgiven=REFRESHED, picture="gallery.png"),
    Sight("gallery-empty", "/renders/", STRANGER),
    Sight("form", FORM, OWNER),
    Sight("completed", "/renders/{completed}/", OWNER, picture="render.png"),
    Sight("video", "/renders/{video}/", OWNER),
    Sight("failed", "/renders/{failed}/", OWNER),
    Sight("canceled", "/renders/{canceled}/", OWNER),
    Sight("running", "/renders/{running}/", OWNER, forgiven=REFRESHED),
    Sight("admin-index", "/admin/", ADMIN),
    Sight(
        "admin-list",
        "/admin/renders/renderjob/",
        ADMIN,
        others="#changelist-search",  # Django's search has no label
        picture="admin.png",
    ),
    Sight("admin-add", "/admin/renders/renderjob/add/", ADMIN),
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
    page.evaluate(ALL_IMAGES)
    page.evaluate("window.stop()")  # no refresh in the middle of a look


def set_scheme(page: Page, scheme: str) -> None:
    """Let the person prefer `light` or `dark`."""
    page.emulate_media(color_scheme=scheme)
    page.evaluate(AT_REST)
