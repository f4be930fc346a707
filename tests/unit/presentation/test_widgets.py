"""The widgets: plain fields without their script, and what the script needs."""

import re
from pathlib import Path

from django import forms
from django.contrib.staticfiles import finders

from renders.presentation.forms import ParamsField
from renders.presentation.widgets import HELP, JsonEditor, KindChoice
from renders.states import Kind


class Params(forms.Form):
    params = ParamsField(required=False)


def test_the_editor_is_a_text_area_of_every_form_with_params():
    form = Params()

    assert isinstance(form.fields["params"].widget, JsonEditor)
    assert str(form["params"]).startswith("<textarea")
    assert "data-json-editor" in str(form["params"])
    for file in ("renders/json-editor.js", "renders/json-editor.css"):
        assert file in str(form.media)
        assert finders.find(file)


def test_an_error_with_a_place_tells_the_editor():
    html = str(Params({"params": '{\n"a": }'})["params"])

    assert 'data-error-line="2"' in html and 'data-error-column="6"' in html


def test_an_error_without_a_place_or_no_error_tells_nothing():
    for text in ('{"x": NaN}', "{}", ""):
        assert "data-error" not in str(Params({"params": text})["params"])


def test_what_was_typed_never_ends_the_text_area():
    html = str(Params({"params": "</textarea><script>"})["params"])

    assert "<script>" not in html and html.count("</textarea>") == 1


def test_each_kind_is_a_choice_with_its_help():
    html = KindChoice(choices=Kind.choices).render("kind", "video", {"id": "id_kind"})

    assert re.findall(r'value="(\w+)"', html) == list(Kind)
    assert re.findall(r'value="(\w+)"[^>]*checked', html) == ["video"]
    assert all(text in html for text in HELP.values())
    assert html.count("<label") == len(Kind)


def test_the_style_sheet_hides_what_is_not_for_the_chosen_kind():
    css = Path(finders.find("renders/kinds.css")).read_text()

    for kind in Kind:
        chosen = f'form:has([name="kind"][value="{kind}"]:checked)'
        assert f'{chosen} .for-kind:not([data-kinds~="{kind}"])' in css
        assert f':has([data-kinds]:not([data-kinds~="{kind}"], .for-kind))' in css
    for sheet in ("admin.css", "renders.css"):
        assert '@import url("kinds.css")' in Path(finders.find(f"renders/{sheet}")).read_text()
