"""The API's views. They parse queries and bodies, and call services."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from renders import services
from renders.api.base import ApiView
from renders.api.document import document
from renders.api.listing import read_listing
from renders.api.reading import read_key, read_wanted
from renders.api.representation import represent, represent_allowance
from renders.exceptions import InvalidRender, KeyReused, LineFull, ReferenceTaken, TooManyAtOnce
from renders.models import RenderJob
from renders.models.querysets import RenderQuerySet
from renders.presentation import media_files
from renders.presentation.problems import Problem
from renders.services import allowances, permissions
from renders.services.references import Created, create_once


class RenderList(ApiView):
    """`/api/renders/`."""

    needs_body = True

    def get(self, request: HttpRequest) -> JsonResponse:
        """The newest renders, page by page."""
        rows, cursor = read_listing(request.GET).page(_visible(request))
        body: dict[str, Any] = {"renders": [represent(request, row) for row in rows], "next": None}
        headers: dict[str, str] = {}
        if cursor:
            query = request.GET.copy()
            query["cursor"] = cursor
            body["next"] = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
            headers["Link"] = f'<{body["next"]}>; rel="next"'
        return JsonResponse(body, headers=headers)

    def post(self, request: HttpRequest) -> JsonResponse:
        """Make one render or several, all or none: 202, with their addresses."""
        if not permissions.may_add(request.user):
            raise Problem(403, "You may see renders, but not make any.")
        key = read_key(request)
        wanted = read_wanted(request)
        try:
            created = create_once(wanted.requests, user=request.user, key=key, body=wanted.body)
        except KeyReused:
            raise Problem(
                409,
                "This Idempotency-Key was sent before, with another body. Take a new key.",
                code="idempotency_key_reused",
            ) from None
        except ReferenceTaken as error:
            field = wanted.field(error.index, error.field)
            raise Problem(
                409,
                "Nothing was made: a reference was given before, with another request.",
                [InvalidRender(field, error.message)],
                code="reference_taken",
            ) from None
        except LineFull as error:
            raise _line_full(error) from None
        except TooManyAtOnce as error:  # concerns the whole list
            raise Problem(422, "Nothing was made: the list is too long.", [error]) from None
        except InvalidRender as error:
            named = InvalidRender(wanted.field(error.index, error.field), error.message)
            raise Problem(422, "Nothing was made: this is not acceptable.", [named]) from None
        if len(created.renders) < len(wanted.requests):
            raise Problem(409, "What this Idempotency-Key made was deleted. Take a new key.")
        return _made(request, created, many=wanted.many)


class RenderDetail(ApiView):
    """`/api/renders/<id>/`."""

    def get(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """One render."""
        return JsonResponse(represent(request, _one(request, pk)))


class RenderCancel(ApiView):
    """`/api/renders/<id>/cancel/`."""

    def post(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """Request a render's cancellation; the reply says what happened."""
        render = _one(request, pk)
        if not permissions.may_cancel(request.user, render):
            raise Problem(403, "You may see this render, but not cancel it.")
        if services.cancel_render(render):
            outcome = "canceled" if render.is_terminal else "requested"
        else:
            outcome = "ended_before" if render.is_terminal else "requested_before"
        body = {"outcome": outcome, "render": represent(request, render)}
        return JsonResponse(body, status=202)


class RenderResend(ApiView):
    """`/api/renders/<id>/resend/`."""

    def post(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """Resend a render with an unknown outcome, with the same key."""
        render = _one(request, pk)
        if not permissions.may_retry(request.user, render):
            raise Problem(403, "You may see this render, but not send it again.")
        if not services.resend_render(render):
            words = "Its outcome is known, or it was sent again or retried before."
            raise Problem(409, words, code="not_resendable")
        return JsonResponse(represent(request, render), status=202)


class RenderStoreMedia(ApiView):
    """`/api/renders/<id>/store-media/`."""

    def post(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """Fetch a completed render's missing media again."""
        render = _one(request, pk)
        if not permissions.may_retry(request.user, render):
            raise Problem(403, "You may see this render, but not have its media stored again.")
        if not services.store_media(render):
            words = "It is not completed, nothing is missing, or it is being fetched just now."
            raise Problem(409, words, code="nothing_to_store")
        return JsonResponse(represent(request, render), status=202)


class RenderRetry(ApiView):
    """`/api/renders/<id>/retry/`."""

    def post(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """Retry a failed or canceled render as a new one, once."""
        render = _one(request, pk)
        if not permissions.may_retry(request.user, render):
            raise Problem(403, "You may see this render, but not retry it.")
        try:
            new, is_new = services.retry_once(render, request.user)
        except LineFull as error:
            raise _line_full(error) from None
        except InvalidRender as error:
            raise Problem(409, error.message, code="not_retryable") from None
        return _made(request, Created([new], replayed=not is_new), many=False)


class RenderArtifact(ApiView):
    """`/api/renders/<id>/artifacts/<index>/`."""

    def get(self, request: HttpRequest, pk: UUID, index: int) -> HttpResponseBase:
        """A finished picture or clip, as on the page, but for tokens too."""
        return media_files.artifact(request, permissions.visible(request.user, pk), index)


class Budget(ApiView):
    """`/api/renders/budget/`."""

    def get(self, request: HttpRequest) -> JsonResponse:
        """What is left of this month's budgets in each workspace that the caller may use."""
        now = timezone.now()
        rows = [represent_allowance(row) for row in allowances.every(request.user, now)]
        return JsonResponse({"month": allowances.month(now), "workspaces": rows})


class Document(ApiView):
    """`/api/renders/openapi.json`, for everybody: it has no private data.

    Client generators read it before there is a token.
    """

    public = True

    def get(self, request: HttpRequest) -> JsonResponse:
        """The OpenAPI document."""
        return JsonResponse(document(), headers={"Cache-Control": "public, max-age=300"})


class Nothing(ApiView):
    """Any other address below `/api/renders/`, and the one without its slash."""

    def _answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        raise Problem(404, "There is nothing at this address. Addresses of renders end with /.")


def _line_full(error: LineFull) -> Problem:
    return Problem(
        429,
        f"Nothing was made. {error.message}",
        code="too_many_waiting",
        Retry_After=str(error.retry_after),
    )


def _made(request: HttpRequest, created: Created, *, many: bool) -> JsonResponse:
    bodies = [represent(request, render) for render in created.renders]
    headers = {"Idempotency-Replayed": "true"} if created.replayed else {}
    if many:
        return JsonResponse({"renders": bodies}, status=202, headers=headers)
    return JsonResponse(bodies[0], status=202, headers={**headers, "Location": bodies[0]["url"]})


def _visible(request: HttpRequest) -> RenderQuerySet:
    return RenderJob.objects.visible_to(request.user).defer("request_body")


def _one(request: HttpRequest, pk: UUID) -> RenderJob:
    render = _visible(request).filter(pk=pk).first()
    if render is None:
        raise Problem(404, "There is no such render, or it is not yours.")
    return render
