"""The list of renders, also where there are millions: nothing in it counts or reads them all."""

from datetime import datetime, timedelta
from typing import Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import cached_property

from renders import attention
from renders.models.querysets import RenderQuerySet
from renders.titles import with_openings

# Nobody reads on for longer: filters find what lies further back.
MOST_COUNTED = 10_000
LONGEST_DAYS = {"year": 366, "month": 31, "day": 1}


class AtLeast(int):
    """A number at which counting ended."""

    def __str__(self) -> str:
        return f"{int(self):,}+"


class RenderPages(Paginator):
    """Counts as far as somebody may read on."""

    @cached_property
    def count(self) -> int:
        found: Any = self.object_list
        number = found.order_by()[: MOST_COUNTED + 1].count()
        return number if number <= MOST_COUNTED else AtLeast(MOST_COUNTED)


class ByPeriod(RenderQuerySet):
    """What the list's line of years, months or days asks for."""

    def datetimes(self, field_name: str, kind: str, *args: Any, **kwargs: Any) -> Any:
        """When those periods began in which there are some: one look into the index for each."""
        found: list[datetime] = []
        rows = self.order_by(field_name).values_list(field_name, flat=True)
        moment = rows.first()
        while moment:
            start = _start(timezone.localtime(moment), kind)
            found.append(start)
            following = _start(start + timedelta(days=LONGEST_DAYS[kind], hours=2), kind)
            moment = rows.filter(**{f"{field_name}__gte": following}).first()
        return found


class RenderList(ChangeList):
    """Reads no more than a page of the list shows: prompts and requests can be long."""

    def get_filters(self, request: HttpRequest) -> Any:
        given = [value for values in self.get_filters_params().values() for value in values]
        if "\0" in "".join(given):  # PostgreSQL cannot even compare it
            raise IncorrectLookupParameters
        return super().get_filters(request)

    def get_queryset(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # Dates of what is filtered otherwise could only be found by reading all.
        others = [name for name in self.get_filters_params() if not name.startswith("created_at__")]
        if others or self.query:
            self.date_hierarchy = None
        return super().get_queryset(request, *args, **kwargs)

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = attention.with_reason(self.result_list)
        self.result_list = with_openings(rows.defer("request_body", "error_message"), 100)


def _start(moment: datetime, kind: str) -> datetime:
    """When the year, month or day of this moment began, by the clock on the wall."""
    month = 1 if kind == "year" else moment.month
    day = moment.day if kind == "day" else 1
    return timezone.make_aware(datetime(moment.year, month, day))  # noqa: DTZ001 (made aware)
