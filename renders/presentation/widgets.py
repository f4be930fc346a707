"""Form widgets (a JSON editor, a choice of kinds, suggestions), and the texts about each kind."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms

from renders.states import Kind
from renders.sume.bodies import LONGEST_SECONDS, WORDS_PER_SECOND

# What each kind makes. No promise about further fields: they depend on Sume's models.
HELP: dict[Kind, str] = {
    Kind.IMAGE: "A still picture of what the prompt says.",
    Kind.VIDEO: "A clip made from the prompt; it takes longer and costs more than a picture.",
    Kind.AVATAR: "A character, to be used again in avatar videos.",
    Kind.AVATAR_VIDEO: "A clip in which an avatar says what you write.",
}
# The prompt's label and help for each kind.
PROMPT_LABELS: dict[Kind, str] = {
    Kind.IMAGE: "Prompt",
    Kind.VIDEO: "Prompt",
    Kind.AVATAR: "Description",
    Kind.AVATAR_VIDEO: "Script",
}
PROMPT_HELP: dict[Kind, str] = {
    Kind.IMAGE: "What the picture should show, in your words.",
    Kind.VIDEO: "What the clip should show, in your words.",
    Kind.AVATAR: "Describe the avatar. Or leave this empty and give a photo, or ethnicity, sex and "
    "age.",
    Kind.AVATAR_VIDEO: f"What the avatar says: up to {LONGEST_SECONDS} seconds, about "
    f"{int(LONGEST_SECONDS * WORDS_PER_SECOND) // 10 * 10} words.",
}
# Example prompts.
EXAMPLES: dict[Kind, str] = {
    Kind.IMAGE: "A lighthouse at dawn, watercolour, soft light.",
    Kind.VIDEO: "A paper boat drifts down a rainy street; the camera follows it.",
    Kind.AVATAR: "A friendly librarian in her fifties, round glasses, green cardigan, front view.",
    Kind.AVATAR_VIDEO: "Welcome! What shall we read today?",
}


class JsonEditor(forms.Textarea):
    """A text area for JSON; its script checks the text while it is typed and marks wrong lines.

    Without the script it is a plain text area. Its page needs `{{ form.media }}`.
    """

    class Media:
        css = {"all": ["renders/json-editor.css"]}
        js = ["renders/json-editor.js"]

    def __init__(self, attrs: dict[str, Any] | None = None) -> None:
        own = {
            "data-json-editor": "",
            "class": "json-editor",
            "rows": 6,
            "spellcheck": "false",
            "autocapitalize": "off",
            "autocomplete": "off",
            "wrap": "off",
        }
        super().__init__(own | (attrs or {}))


class KindChoice(forms.RadioSelect):
    """A choice of the kinds, each with a sentence that explains it."""

    template_name = "renders/widgets/kinds.html"
    prices: Mapping[str, int] = {}
    """The approximate cost of each kind, in millionths of a dollar, if known."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value in Kind.values:
            option["help"] = HELP[Kind(value)]
            if value in self.prices:
                option["price"] = self.prices[value]
        return option


class Suggesting(forms.TextInput):
    """A text input with suggestions; other text is allowed too."""

    template_name = "renders/widgets/suggesting.html"
    offered: Callable[[], Sequence[str]] | None = None
    """Returns the suggestions; called only when the widget is shown."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        offered = list(self.offered()) if self.offered else []
        if offered:
            context["offered"] = offered
            context["widget"]["attrs"]["list"] = f"suggestions_{name}"
        return context
