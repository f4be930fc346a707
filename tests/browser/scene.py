"""A set of renders as a person would have them: every status, every sort of media."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from renders.models import RenderEvent, RenderJob
from renders.states import Status
from tests.browser.site import PROCESSING_SECONDS, QUEUED_SECONDS, Site

ENDED = {
    "octopus": "Portrait of an octopus as a clockmaker, oil on canvas",
    "tram": "A tram crossing a bridge of books",
    "glass": "A lighthouse made of glass in a thunderstorm",
    "completed": "A red fox asleep in fresh snow at dawn",
    "failed": "FAIL:content_policy_rejected",
}
FAILED = "A harbour at night, long exposure"
VIDEO = "Waves roll over a piano on the beach, slow motion"
CANCELED = "A greenhouse on the moon, wide angle"
RUNNING = "A paper boat on a river of ink, macro"

HISTORY = "A poster for the summer fair, number {}"
# As many ended in each hour before.
HISTORY_HOURS = 1, 2, 1, 1, 2, 3, 2, 1, 1, 0, 1, 2, 3, 1, 2, 1, 0, 1, 1, 2, 1, 1

TIMES = "created_at", "claimed_at", "submitted_at", "finished_at", "handled_at"


@dataclass(frozen=True)
class Scene:
    """Whose renders they are, and the ids of those that a page shows alone."""

    user: Any
    admin: Any
    stranger: Any
    renders: dict[str, RenderJob]

    def path(self, template: str) -> str:
        """An address with names of renders in it, such as `/renders/{failed}/`."""
        return template.format(**{name: row.pk for name, row in self.renders.items()})


@contextmanager
def scene(site: Site, user: str = "", admin: str = "") -> Iterator[Scene]:
    """Make it; the one that runs does so until this is left."""
    owner, boss, stranger = site.new_user(user), site.new_admin(admin), site.new_user()
    renders = {name: site.create(prompt, owner) for name, prompt in ENDED.items()}
    renders["video"] = site.create(VIDEO, owner, kind="video", params={"aspect_ratio": "16:9"})
    site.until_handled(created_by=owner)
    with site.clock.stopped():
        renders["canceled"] = site.create(CANCELED, owner)
        _until_sume_says(site, renders["canceled"], "queued")
        site.cancel(renders["canceled"])
        site.until_handled(created_by=owner)
        renders["running"] = site.create(RUNNING, owner, priority=5)
        _until_sume_says(site, renders["running"], "queued")
        site.clock.pass_by(QUEUED_SECONDS + PROCESSING_SECONDS / 2)
        _until_sume_says(site, renders["running"], "processing")
        site.database(_retouch, list(renders.values()))
        site.database(_add_history)
        yield Scene(owner, boss, stranger, renders)


def _until_sume_says(site: Site, render: RenderJob, word: str) -> None:
    site.until(lambda: site.renders(pk=render.pk, sume_status=word), f"{word}: {render}")


def _retouch(renders: list[RenderJob]) -> None:
    """Nobody adds eight renders in one second, or asks for a failure."""
    for age, render in enumerate(reversed(renders)):
        earlier = timedelta(seconds=20 + age * 437)
        RenderJob.objects.filter(pk=render.pk).update(**{name: F(name) - earlier for name in TIMES})
        RenderEvent.objects.filter(render=render).update(at=F("at") - earlier)
    RenderJob.objects.filter(prompt=ENDED["failed"]).update(prompt=FAILED)


def _add_history() -> None:
    """A day's renders of a program, for the charts; as if they were handled long ago."""
    now = timezone.now()
    hours = [hour for hour, count in enumerate(HISTORY_HOURS, start=1) for _ in range(count)]
    rows = []
    for number, hour in enumerate(hours, start=1):
        wait = timedelta(seconds=2 + number % 5)
        taken = timedelta(seconds=60 + number * 7 % 41)
        submitted = now - timedelta(hours=hour, minutes=number % 7)
        status = Status.FAILED if number % 9 == 0 else Status.COMPLETED
        rows.append(
            RenderJob(
                prompt=HISTORY.format(number),
                status=status,
                sume_status=status,
                sume_job_id=f"job-of-{number}",
                created_at=submitted - wait,
                claimed_at=submitted,
                submitted_at=submitted,
                finished_at=submitted + taken,
                handled_at=submitted + taken,
                cost_usd_micros=0 if status == Status.FAILED else 40_000,
            )
        )
    RenderJob.objects.bulk_create(rows)
