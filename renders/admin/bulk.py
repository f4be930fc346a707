"""The pages that add many renders at once: a form, a preview, and the confirmation.

They work without JavaScript. The draft has the first page's token; see `renders.services.drafts`.
"""

import json
from typing import Any, cast
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import AdminForm
from django.contrib.admin.models import ADDITION
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.validators import RegexValidator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from renders.admin.actions import ONE_BY_ONE, note
from renders.conf import workspaces
from renders.exceptions import InvalidRender
from renders.models import Draft
from renders.presentation.forms import (
    ParamsField,
    add_error_of,
    add_models,
    add_workspaces,
    new_token,
)
from renders.services import drafts, permissions
from renders.services.import_files import MAX_RENDERS, Layout, Sheet, Unreadable, decode, layout_of
from renders.services.inputs import COLUMNS
from renders.services.validation import request_errors, request_fields
from renders.states import Kind

FIELDSETS: Any = [
    (None, {"fields": ["token", "prompts", "sheet"]}),
    (
        "For all of them",
        {
            "fields": [("kind", "model", "priority"), "params"],
            "description": "Where a line of a file says something else, the line counts.",
        },
    ),
]
MAX_BYTES = 10_000_000
MOST_TYPED = 2_000_000
SHOWN_ROWS = 10
SHOWN_FAULTS = 200
LIST = "admin:renders_renderjob_changelist"
FORM = "admin:renders_renderjob_add_many"


class AddMany(admin.ModelAdmin):
    """The form and its preview, for users who may add renders."""

    def get_urls(self) -> list[Any]:
        wrap = self.admin_site.admin_view
        name = "renders_renderjob_add_many"
        return [
            path("add-many/", wrap(self.add_many), name=name),
            path("add-many/<slug:token>/", wrap(self.add_many_preview), name=f"{name}_preview"),
            *super().get_urls(),
        ]

    def add_many(self, request: HttpRequest) -> HttpResponse:
        """The form. Valid input is kept as a draft and shown on the next page."""
        self._guard(request)
        form = AddManyForm(request.POST or None, request.FILES or None, user=request.user)
        faults: list[Any] = []
        if form.is_bound and form.is_valid():
            sheet = cast(Sheet, form.read)
            faults = sheet.faults
            data = form.cleaned_data
            if not faults:
                draft = drafts.keep(
                    request.user, data["token"], data["text"], data["layout"], data["common"]
                )
                if draft is not None:
                    return redirect(f"{FORM}_preview", draft.token)
                form.add_error(None, "Open this page anew.")
        context = {
            "title": "Add many renders",
            "adminform": AdminForm(cast(Any, form), _fieldsets(form), {}),
            "errors": form.errors,
            "form": form,
            "faults": faults[:SHOWN_FAULTS],
            "fault_count": len(faults),
            "more_faults": max(0, len(faults) - SHOWN_FAULTS),
            "media": self.media + form.media,
        }
        return self._page(request, "add_many", context)

    def add_many_preview(self, request: HttpRequest, token: str) -> HttpResponse:
        """The renders that would be added and billed; POST adds them, once."""
        self._guard(request)
        draft = Draft.objects.filter(token=token, created_by=request.user.pk).first()
        if draft is None:
            messages.error(request, "This list is no longer kept. Nothing was added; send it anew.")
            return redirect(FORM)
        if draft.added_at:
            return self._added_before(request, draft)
        faults: list[Any] = []
        if request.method == "POST":
            try:
                renders, is_new = drafts.add(draft, request.user)
            except drafts.Faulty as error:
                faults = error.faults
            except InvalidRender as error:
                # The list is kept, and can be added later.
                messages.error(request, f"Nothing was added. {error.message}")
            else:
                if is_new:
                    return self._added(request, draft, renders)
                return self._added_before(request, draft)
        sheet = drafts.check(draft.text, Layout(draft.layout), draft.common, request.user)
        count = len(sheet.requests)
        context = {
            "title": "Add many renders",
            "count": count,
            "rows": [
                (line, request, _in_words(request["params"]))
                for line, request in sheet.requests[:SHOWN_ROWS]
            ],
            "more_rows": max(0, count - SHOWN_ROWS),
            "estimate": None if sheet.faults else drafts.estimate(sheet, request.user),
            "several": workspaces.several(),
            "repeats": sheet.repeats[:SHOWN_ROWS],
            "repeat_count": len(sheet.repeats),
            "faults": (faults or sheet.faults)[:SHOWN_FAULTS],
            "twin": drafts.added_before(draft),
        }
        return self._page(request, "add_many_preview", context)

    def _guard(self, request: HttpRequest) -> None:
        if not self.has_add_permission(request):
            raise PermissionDenied

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any]) -> HttpResponse:
        base = {**self.admin_site.each_context(request), "opts": self.opts}
        return TemplateResponse(request, f"renders/admin/{name}.html", base | context)

    def _added(self, request: HttpRequest, draft: Draft, renders: list[Any]) -> HttpResponse:
        count = len(renders)
        words = f"{count:,} render{'s' if count != 1 else ''} added"
        named = [render.pk for render in renders[: ONE_BY_ONE + 1]]
        note(request, ADDITION, f"{words}, many at once.", count, named)
        messages.success(request, f"{words}. Sent to Sume in their turn.")
        return self._list(request, draft)

    def _added_before(self, request: HttpRequest, draft: Draft) -> HttpResponse:
        text = "This list was added before; nothing was added again. These are its renders."
        messages.info(request, text)
        return self._list(request, draft)

    def _list(self, request: HttpRequest, draft: Draft) -> HttpResponse:
        """The list of the draft's renders, except lines that have a reference of their own."""
        if not self.has_view_permission(request):
            return redirect("renders:gallery")
        query = urlencode({"reference__startswith": draft.prefix})
        return HttpResponseRedirect(f"{reverse(LIST)}?{query}")


class AddManyForm(forms.Form):
    """Typed prompts or a file, and common fields for all of them."""

    token = forms.CharField(
        widget=forms.HiddenInput(attrs={"autocomplete": "off"}),
        validators=[RegexValidator(r"^[A-Za-z0-9_-]{16,64}\Z")],
        error_messages={"required": "Send the form again.", "invalid": "Send the form again."},
    )
    prompts = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "class": "vLargeTextField"}),
        help_text="One prompt a line. Empty lines are skipped.",
    )
    sheet = forms.FileField(
        required=False,
        label="Or a file",
        widget=forms.FileInput(attrs={"accept": ".csv,.tsv,.jsonl,.ndjson,.txt"}),
        help_text=f"UTF-8, up to {MAX_RENDERS:,} renders and {MAX_BYTES // 10**6} MB. "
        ".csv or .tsv: a table whose first line names the columns. "
        ".jsonl: one JSON object a line. .txt: one prompt a line. ",
    )
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.IMAGE)
    model = forms.CharField(initial="sume/auto", max_length=100)
    priority = forms.IntegerField(
        initial=0, min_value=-32_000, max_value=32_000, help_text="Higher goes first."
    )
    params = ParamsField(
        required=False,
        initial=dict,
        widget=forms.Textarea(attrs={"rows": 3, "class": "vLargeTextField", "spellcheck": "false"}),
        help_text='Further fields of the request, as a JSON object: {"aspect_ratio": "16:9"}.',
    )
    read: Sheet | None = None

    def __init__(self, *args: Any, user: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        self.initial["token"] = new_token()
        self.fields["sheet"].help_text += (
            f"The names: {', '.join(request_fields())}; for avatars and avatar videos also "
            f"{', '.join(COLUMNS)}."
        )
        add_workspaces(self)
        add_models(self)
        if not permissions.may_prioritize(user):
            del self.fields["priority"]

    def clean_prompts(self) -> str:
        """Refuse too long text here: with a `maxlength`, browsers cut pasted text silently."""
        prompts: str = self.cleaned_data["prompts"]
        if len(prompts) > MOST_TYPED:
            raise ValidationError(f"More than {MOST_TYPED:,} characters: send them as a .txt file.")
        return prompts

    def clean_sheet(self) -> Any:
        """The file's layout and text, or None."""
        file = self.cleaned_data["sheet"]
        if not file:
            return None
        if file.size > MAX_BYTES:
            raise ValidationError(f"The file is larger than {MAX_BYTES // 10**6} MB; split it.")
        try:
            return layout_of(file.name), decode(file.read())
        except Unreadable as error:
            raise ValidationError(str(error)) from None

    def clean(self) -> dict[str, Any]:
        """Check every line, once the form itself is valid."""
        data = self.cleaned_data
        prompts, sheet = data.get("prompts", ""), data.get("sheet")
        if not self.errors and bool(prompts.strip()) == bool(sheet):
            text = "Type prompts or choose a file" + (", not both." if sheet else ".")
            self.add_error("prompts", text)
        common = {name: data.get(name) for name in ("kind", "model", "params")}
        common["priority"] = data.get("priority", 0)
        common |= {"workspace": data["workspace"]} if data.get("workspace") else {}
        if not self.errors:
            for error in request_errors(common):
                # Lines can supply further fields that a kind needs, so these may be missing here.
                name = error.field.removeprefix("params.")
                if name == error.field or name in (common["params"] or {}):
                    add_error_of(self, error)
        if not self.errors:
            data["layout"], data["text"] = sheet or (Layout.LINES, prompts)
            data["common"] = common
            self.read = drafts.check(data["text"], data["layout"], common, self.user)
            if not (self.read.requests or self.read.faults):
                self.add_error("sheet" if sheet else "prompts", "There is no render in it.")
        return data


def _fieldsets(form: AddManyForm) -> Any:
    top, (name, options) = FIELDSETS
    (*row, priority), *rest = options["fields"]
    if priority in form.fields:
        row.append(priority)
    if "workspace" in form.fields:
        rest.append("workspace")
    return [top, (name, {**options, "fields": [tuple(row), *rest]})]


def _in_words(params: dict[str, Any]) -> list[tuple[str, str]]:
    """Each field's name and its value, as text or JSON."""
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in params.items()
    ]
