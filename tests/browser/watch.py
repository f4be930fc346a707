"""Watches pages for what a person would never report: errors in its console, missing files."""

from pathlib import Path

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Error,
    Request,
    Response,
    WebError,
)

# Said of every answer of 400 and more; the answers themselves are judged below.
BY_STATUS = "Failed to load resource"
# A navigation ends what is still loading; so does a video that has been read far enough.
ABORTED = "net::ERR_ABORTED"


class Watch:
    """`problems` is what went wrong so far in the pages (tabs) of one browser.

    A page that is missing (404) is no problem, a file is.
    """

    def __init__(self, context: BrowserContext) -> None:
        self.problems: list[str] = []
        self._context = context
        self._lines: list[str] = []
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("response", self._on_response)
        context.on("requestfailed", self._on_failure)

    def dump(self, folder: Path, name: str) -> list[Path]:
        """Store pictures of the pages and what their consoles said."""
        console = folder / f"{name}.txt"
        files = [console]
        lines = [*self._lines, *self.problems]
        for number, page in enumerate(self._context.pages, start=1):
            picture = folder / f"{name}-{number}.png"
            try:
                page.screenshot(path=picture, full_page=True, timeout=5_000)
            except Error as error:
                lines.append(f"No picture of {page.url}: {error.message}")
            else:
                lines.append(f"{picture.name}: {page.url}")
                files.append(picture)
        console.write_text("\n".join(lines))
        return files

    def _on_console(self, message: ConsoleMessage) -> None:
        self._lines.append(f"{message.type}: {message.text}")
        if message.type == "error" and not message.text.startswith(BY_STATUS):
            self.problems.append(f"console: {message.text}")

    def _on_error(self, found: WebError) -> None:
        self.problems.append(f"uncaught: {found.error.message}")

    def _on_response(self, response: Response) -> None:
        page_itself = response.request.resource_type == "document"
        if response.status >= (500 if page_itself else 400):
            self.problems.append(f"{response.status} for {response.url}")

    def _on_failure(self, request: Request) -> None:
        if request.failure != ABORTED:
            self.problems.append(f"{request.failure} for {request.url}")
