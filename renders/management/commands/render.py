"""`manage.py render`: create renders and follow them. A worker must be running."""

import argparse
import json
import math
import shlex
import sys
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from django.urls import NoReverseMatch, reverse
from rich.text import Text

from renders.exceptions import InvalidRender
from renders.management.follow import (
    PATIENCE_SECONDS,
    End,
    Following,
    board_on,
    did_as_asked,
    outcome,
    total_cost,
)
from renders.management.terminal import console_on, exit_on_sigterm, one_line
from renders.models import RenderJob
from renders.presentation.titles import title_of
from renders.services import create_renders
from renders.services.validation import SAY_WHAT, parse_json
from renders.states import Kind
from renders.sume.bodies import FIELDS, SHAPES, needs_prompt

HANDLE = "avatar_handle"
NOT_AS_ASKED = 1
USAGE = 2
NO_END = 3
STOPPED = 130


class Command(BaseCommand):
    help = (
        "Create renders and follow them until they have ended. Status: 0 all completed, "
        "1 some did not, 2 wrong usage, 3 they did not end in time, 130 stopped with Ctrl-C."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "prompts",
            nargs="*",
            metavar="prompt",
            help="what each picture or clip should show, what the avatar looks like, or what it "
            "says; - reads one a line; none for an avatar from a photo or from props",
        )
        parser.add_argument("--kind", choices=Kind.values, default=Kind.IMAGE.value)
        parser.add_argument("--model", help="Sume's name of the model (default: sume/auto)")
        parser.add_argument(
            "--avatar", metavar="HANDLE", help="the avatar that is made, or that speaks"
        )
        parser.add_argument(
            "--param",
            action="append",
            type=parameter,
            default=[],
            metavar="KEY=JSON",
            help="a further field of the request, for instance seed=7 or style='\"ink\"'",
        )
        parser.add_argument("--priority", type=int, default=0, help="higher goes first")
        parser.add_argument("--user", help="whose renders they are (default: nobody's)")
        parser.add_argument(
            "--workspace", help="the Sume account that is billed (default: the user's)"
        )
        parser.add_argument(
            "--reference", help="your own unique name: the same one gives the same render again"
        )
        parser.add_argument(
            "--no-follow", action="store_true", help="only create them and print their pages"
        )
        parser.add_argument(
            "--timeout", type=positive, metavar="SECONDS", help="stop following after this time"
        )
        parser.add_argument(
            "--expect-sandbox-failures",
            action="store_true",
            help="prompts beginning with FAIL or REJECT are right when they fail",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        self.console = console_on(self.stdout, no_color=options["no_color"])
        following = Following(self.create(options))
        if options["no_follow"]:
            for render in following.renders:
                self.line(f"{page_of(render)}  {one_line(title_of(render), 60)}")
            return
        try:
            status = self.follow(following, options)
        except KeyboardInterrupt:
            self.line(f"Stopped following. The renders go on; see {gallery()}.")
            status = STOPPED
        if status:
            sys.exit(status)

    def create(self, options: dict[str, Any]) -> list[RenderJob]:
        """Store all renders, or none and say why."""
        kind, params = Kind(options["kind"]), params_of(options)
        prompts = [text for given in options["prompts"] for text in expanded(given)]
        if not options["prompts"] and not needs_prompt(kind, params):
            prompts = [""]
        if not prompts:
            words = "There is no prompt in the input."
            if not options["prompts"]:
                words = told(InvalidRender("prompt", SAY_WHAT[kind]))
            raise CommandError(words, returncode=USAGE)
        if options["reference"] and len(prompts) > 1:
            raise CommandError("--reference names one render: give one prompt.", returncode=USAGE)
        fields = {
            "kind": kind,
            **({} if options["model"] is None else {"model": options["model"]}),
            "params": params,
            "priority": options["priority"],
            "reference": options["reference"],
            "workspace": options["workspace"],
        }
        try:
            user = find_user(options["user"])
            return create_renders([{**fields, "prompt": text} for text in prompts], user=user)
        except InvalidRender as error:
            raise CommandError(told(error), returncode=USAGE) from None
        except DatabaseError as error:
            raise CommandError(
                f"The database is not ready ({type(error).__name__}). Check DATABASE_URL, and "
                "run: python manage.py migrate",
                returncode=USAGE,
            ) from error

    def follow(self, following: Following, options: dict[str, Any]) -> int:
        """Show the renders until they end, then what became of them; return the exit status."""
        with exit_on_sigterm(), board_on(self.console) as board:
            end = following.until_end(board.show, timeout=options["timeout"])
        for render in following.renders:
            self.line(
                f"{render.status:<10} {one_line(title_of(render), 40):<40}  {outcome(render)}"
            )
        self.line(total_cost(following.renders))
        if following.deleted:
            self.line(f"{following.deleted} of them were deleted meanwhile.")
        if end is not End.ENDED:
            after = options["timeout"] if end is End.TIMED_OUT else PATIENCE_SECONDS
            why = "did not end in" if end is End.TIMED_OUT else "did not move for"
            count = f"{len(following.open)} of {len(following.renders)}"
            self.line(f"{count} renders {why} {after:g} s. They go on by themselves. {worker()}")
            return NO_END
        sandbox = options["expect_sandbox_failures"]
        right = [r for r in following.renders if did_as_asked(r, sandbox=sandbox)]
        total = len(following.renders) + following.deleted
        return 0 if len(right) == total else NOT_AS_ASKED

    def line(self, text: str) -> None:
        """One line of output, never cut."""
        self.console.print(Text(text), soft_wrap=True)


def params_of(options: dict[str, Any]) -> dict[str, Any]:
    """The further fields of the request. Raises `CommandError`."""
    params = dict(options["param"])
    if options["avatar"] is None:
        return params
    kinds = [str(kind) for kind, shape in SHAPES.items() if HANDLE in shape.fields]
    if options["kind"] not in kinds:
        raise CommandError(f"--avatar is for --kind {' or '.join(kinds)}.", returncode=USAGE)
    if HANDLE in params:
        raise CommandError(f"Give --avatar or --param {HANDLE}, not both.", returncode=USAGE)
    return {**params, HANDLE: options["avatar"]}


def told(error: InvalidRender) -> str:
    """What is wrong, and by which option a field of one kind's own is given."""
    own = error.field.removeprefix("params.")
    if own == error.field or own not in FIELDS:
        photo = f" Give one, or --param image_url={example('image_url')}."
        return str(error) + photo * (error.message == SAY_WHAT[Kind.AVATAR])
    option = "--avatar HANDLE" if own == HANDLE else f"--param {own}={example(own)}"
    return f"{own}: {error.message} Give {option}."


def example(name: str) -> str:
    """What a field of one kind's own may look like, as it is typed into a shell."""
    field = next(shape.fields[name] for shape in SHAPES.values() if name in shape.fields)
    if field.typed == "number":
        return "NUMBER"
    value: Any = field.choices[0] if field.choices else "…"
    value = "https://…" if field.typed == "url" else value
    for part in field.parts.values():
        value = {**part.fixed, part.key: "…"}
        break
    return shlex.quote(json.dumps(value, ensure_ascii=False))


def worker() -> str:
    """What to look at when nothing moves."""
    package = settings.ROOT_URLCONF.rpartition(".")[0]
    return f"Is a worker running? Start one with: celery -A {package} worker"


def gallery() -> str:
    """Where the renders are shown."""
    try:
        return reverse("renders:gallery")
    except NoReverseMatch:
        return "the admin"  # the project has left the app's pages out


def page_of(render: RenderJob) -> str:
    """Where this render is shown, or its id where the project has left the pages out."""
    try:
        return render.get_absolute_url()
    except NoReverseMatch:
        return str(render.pk)


def parameter(text: str) -> tuple[str, Any]:
    """KEY=JSON as a pair."""
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=JSON")
    try:
        return key, parse_json(value)
    except ValueError:
        hint = f"'{key}=\"{value[:40]}\"'"
        raise argparse.ArgumentTypeError(
            f"the value of {key} is not JSON; text needs its quotes: {hint}"
        ) from None


def positive(text: str) -> float:
    """A number of seconds above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above zero")
    return number


def expanded(prompt: str) -> list[str]:
    """The prompt itself, or for - the lines of standard input."""
    if prompt != "-":
        return [prompt]
    return [line.strip() for line in sys.stdin if line.strip()]


def find_user(name: str | None) -> Any:
    """The user of this name. Raises `CommandError`."""
    if name is None:
        return None
    model = get_user_model()
    try:
        return model._default_manager.get_by_natural_key(name)
    except (model.DoesNotExist, ValueError):  # no name at all: bytes that are no text
        raise CommandError(
            f"There is no user {name!r}. Create one with: python manage.py createsuperuser",
            returncode=USAGE,
        ) from None
