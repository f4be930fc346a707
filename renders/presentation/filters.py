"""The gallery's filters, kept in the query string."""

from datetime import date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from renders.conf import workspaces
from renders.models.querysets import RenderQuerySet, sees_all, standing_in
from renders.reports import standing
from renders.states import Kind, Status

OPEN, HELD, OVERDUE = "open", "held", "overdue"
OFTEN = ("q", "status")


class DayField(forms.DateField):
    """A day from 2000 to 2999, so that the following day is a valid date too."""

    widget = forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d")

    def validate(self, value: date | None) -> None:
        super().validate(value)
        if value and not 2000 <= value.year < 3000:
            raise ValidationError("A day after 2000 is needed.")


def _workspaces() -> list[tuple[str, str]]:
    return [("", "Any"), *((name, name) for name in standing.all_workspaces())]


class FilterForm(forms.Form):
    """Optional filters. An invalid one shows its error and filters nothing."""

    q = forms.CharField(
        required=False,
        max_length=100,
        label="Prompt contains",
        widget=forms.TextInput(attrs={"type": "search"}),
    )
    status = forms.ChoiceField(
        required=False,
        choices=[
            ("", "Any"),
            (OPEN, "Not ended"),
            *Status.choices,
            (HELD, "Held"),
            (OVERDUE, "Overdue"),
        ],
    )
    kind = forms.ChoiceField(required=False, choices=[("", "Any"), *Kind.choices])
    workspace = forms.ChoiceField(required=False, choices=_workspaces)
    whose = forms.ChoiceField(required=False, choices=[("", "Everybody's"), ("mine", "Mine")])
    since = DayField(required=False, label="From day")
    until = DayField(required=False, label="To day")

    def __init__(self, data: Any, *, user: Any) -> None:
        super().__init__(data, label_suffix="")
        self.user = user
        everybody = sees_all(user)
        if not everybody:
            del self.fields["whose"]
        if not everybody or not workspaces.several():
            del self.fields["workspace"]
        self.is_valid()

    def apply(self, renders: RenderQuerySet) -> RenderQuerySet:
        """The renders that pass the filters."""
        wanted = {name: value for name, value in self.cleaned_data.items() if value}
        if "q" in wanted:
            renders = renders.filter(prompt__icontains=wanted["q"])
        if "status" in wanted:
            renders = _in_status(renders, wanted["status"])
        if "kind" in wanted:
            renders = renders.filter(kind=wanted["kind"])
        if "workspace" in wanted:
            renders = renders.filter(workspace=wanted["workspace"])
        if "whose" in wanted:
            renders = renders.filter(created_by=self.user)
        if "since" in wanted:
            renders = renders.filter(created_at__gte=_start(wanted["since"]))
        if "until" in wanted:
            renders = renders.filter(created_at__lt=_start(wanted["until"] + timedelta(days=1)))
        return renders

    @property
    def active(self) -> bool:
        """Whether anything is filtered."""
        return any(self.cleaned_data.values())

    def often(self) -> list[forms.BoundField]:
        """The fields that are always shown."""
        return [self[name] for name in OFTEN]

    def seldom(self) -> list[forms.BoundField]:
        """The fields that are folded away."""
        return [field for field in self if field.name not in OFTEN]

    @property
    def more_open(self) -> bool:
        """Whether a folded field has a value or an error."""
        return any(field.value() or field.errors for field in self.seldom())

    def query(self, **further: str) -> str:
        """The query string with these filters and `further` parameters; empty without any."""
        given = {name: self.data.get(name, "") for name in self.fields} | further
        text = urlencode({name: value for name, value in given.items() if value})
        return f"?{text}" if text else ""


def _in_status(renders: RenderQuerySet, status: str) -> RenderQuerySet:
    match status:
        case "open":
            return renders.filter(finished_at__isnull=True)
        case "held":
            return renders.filter(held_at__isnull=False)
        case "overdue":
            return standing.overdue(renders)
    return renders.filter(standing_in([status]))


def _start(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
