"""The prices of renders, by kind and model, and which new renders a budget forbids.

A price is in millionths of a dollar. A kind's price is a good estimate, but not a limit: `model`
is free text, and another model can cost many times as much. So under a budget only the model's own
price counts, or the kind's if `MODELS` restricts the models. If Sume has charged more for a model
than its price, the highest known cost counts.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from django.db.models import QuerySet

from renders.conf import conf, workspaces
from renders.conf.workspaces import MICROS, Workspace
from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.states import AUTO, takes_model

# An error names up to this many models.
NAMED = 8


class Refusal(Protocol):
    """A function that returns why a new render may not be made, or None."""

    def __call__(
        self, workspace: str, kind: str, model: str, *, owned: bool
    ) -> InvalidRender | None: ...


def estimated(workspace: Workspace, kind: str, model: str) -> int | None:
    """The model's own price, else its kind's; None if neither is known."""
    own = workspace.prices.get(f"{kind}:{model}")
    return workspace.prices.get(str(kind)) if own is None else own


def binding(workspace: Workspace, kind: str, model: str) -> int | None:
    """The price that counts under a budget; None if the cost of such a render has no bound."""
    if takes_model(kind) and not conf.MODELS:
        return workspace.prices.get(f"{kind}:{model}")
    return estimated(workspace, kind, model)


def dearest(kind: str, model: str) -> int:
    """The highest cost that Sume has reported to this installation; 0 without one."""
    return costs(kind, model).first() or 0


def costs(kind: str, model: str) -> "QuerySet[RenderJob, int | None]":
    """The costs above 0 that Sume has reported, highest first."""
    rows = RenderJob.objects.filter(kind=kind, cost_usd_micros__gt=0)
    if takes_model(kind):  # for other kinds, older releases may have stored any model
        rows = rows.filter(model=model)
    return rows.order_by("-cost_usd_micros").values_list("cost_usd_micros", flat=True)


def counted(workspace: Workspace, kind: str, model: str) -> int | None:
    """The assumed cost of a new render under a budget; None if it has no binding price."""
    price = binding(workspace, kind, model)
    return None if price is None else max(price, dearest(kind, model))


def assumed(workspace: Workspace, kind: str, model: str) -> int:
    """The assumed cost of a sent render until Sume reports it; 0 if nothing is known."""
    return max(estimated(workspace, kind, model) or 0, dearest(kind, model))


def estimate(workspace: Workspace, counts: Mapping[tuple[str, str], int]) -> int | None:
    """The estimated cost of these numbers by kind and model; None if a price is unknown."""
    total = 0
    for (kind, model), number in counts.items():
        price = estimated(workspace, kind, model)
        if price is None:
            return None
        total += price * number
    return total if counts else None


def default_model() -> str:
    """The model preselected in forms."""
    return AUTO if not conf.MODELS or AUTO in conf.MODELS else conf.MODELS[0]


def listed(models: Iterable[str]) -> str:
    """The first models and the number of the others, in words."""
    names = list(models)
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" * (len(names) > NAMED))


def refusal(workspace: str, kind: str, model: str, *, owned: bool) -> InvalidRender | None:
    """Why a new render may not be made: its model is not allowed, or it exceeds a whole budget.

    `owned` if it belongs to a user: then the budget per user counts too. None if it may be made.
    """
    named = takes_model(kind)
    if named and conf.MODELS and model not in conf.MODELS:
        words = f"The model {model} is not allowed here. Choose one of: {listed(conf.MODELS)}."
        return InvalidRender("model", words)
    limits = workspaces.find(workspace)
    budgets = {
        "the month's whole budget": limits.budget_usd_micros if limits else 0,
        "what one user may spend in a month": (
            limits.user_budget_usd_micros if limits and owned else 0
        ),
    }
    if limits is None or not any(budgets.values()):
        return None
    field, what = ("model", f"The model {model}") if named else ("kind", f"The kind {kind}")
    price = counted(limits, kind, model)
    if price is None:
        name = f"{kind}:{model}" if named else kind
        words = f"{what} has no price, so the budget cannot be kept."
        todo = f"Ask whoever runs this site to add {name}=… to RENDERS_PRICES."
        return InvalidRender(field, f"{words} {todo}")
    for words, budget in budgets.items():
        if budget and price > budget:
            said = "costs about" if price == binding(limits, kind, model) else "has already cost"
            cost = f"One render {said} ${price / MICROS:,.2f}"
            return InvalidRender(field, f"{cost}, more than {words}: ${budget / MICROS:,.2f}.")
    return None


def remembering() -> Refusal:
    """As `refusal`, for many renders at once: each combination is looked up once."""
    answers: dict[tuple[str, str, str, bool], InvalidRender | None] = {}

    def refused(workspace: str, kind: str, model: str, *, owned: bool) -> InvalidRender | None:
        facts = workspace, kind, model, owned
        if facts not in answers:
            answers[facts] = refusal(workspace, kind, model, owned=owned)
        return answers[facts]

    return refused


def refusal_of(render: RenderJob, refuse: Refusal) -> InvalidRender | None:
    """Why this new row may not be made, or None."""
    owned = render.created_by_id is not None
    return refuse(render.workspace, render.kind, render.model, owned=owned)
