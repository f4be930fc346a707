"""What people fill in: JSON with its errors in place, a kind with what it means, and text with
suggestions.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django import forms

from renders.kinds import HELP
from renders.states import Kind


class JsonEditor(forms.Textarea):
    """A text area for a JSON object. Its script checks while one types and marks the wrong line.

    Without the script it is a text area. A form that holds it needs `{{ form.media }}`.
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
    """One of the kinds, each with a sentence on what it gives."""

    template_name = "renders/widgets/kinds.html"
    prices: Mapping[str, int] = {}
    """What one costs about, in millionths of a dollar, where it is known."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option = super().create_option(name, value, *args, **kwargs)
        if value in Kind.values:
            option["help"] = HELP[Kind(value)]
            if value in self.prices:
                option["price"] = self.prices[value]
        return option


class Suggesting(forms.TextInput):
    """Text with suggestions; any other text can be typed too."""

    template_name = "renders/widgets/suggesting.html"
    offered: Callable[[], Sequence[str]] | None = None
    """Called only when the widget is shown."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        context = super().get_context(name, value, attrs)
        offered = list(self.offered()) if self.offered else []
        if offered:
            context["offered"] = offered
            context["widget"]["attrs"]["list"] = f"suggestions_{name}"
        return context
