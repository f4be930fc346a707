from renders.conf import conf
from renders.bodies import SHAPES
from renders.models import RenderJob


def estimated(w, kind, model):
    own = w.prices.get(f"{kind}:{model}") if SHAPES[kind].takes_model else None
    return own if own is not None else w.prices.get(kind)


def binding(w, kind, model):
    return (
        estimated(w, kind, model)
        if f"{kind}:{model}" in w.prices
        or not SHAPES[kind].takes_model
        or getattr(conf, "MODELS", None)
        else None
    )


def dearest(kind, model):
    from django.db.models import Max

    return (
        RenderJob.objects.filter(kind=kind, model=model, cost_usd_micros__gt=0).aggregate(
            m=Max("cost_usd_micros")
        )["m"]
        or 0
    )


def counted(w, kind, model):
    b = binding(w, kind, model)
    return None if b is None else max(b, dearest(kind, model))


def assumed(w, kind, model):
    return max(estimated(w, kind, model) or 0, dearest(kind, model))
