"""The JSON API for a logged-in user. Every error is a problem document (RFC 9457)."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from renders import services
from renders.artifacts import media
from renders.exceptions import InvalidRender
from renders.models import RenderJob
from renders.states import Status
from renders.validation import REQUEST_FIELDS, parse_json, request_errors

MAX_BODY_BYTES = 1_000_000
DEFAULT_LIMIT, MAX_LIMIT = 50, 200


class Problem(Exception):
    """The request cannot be served; holds what the caller is told."""

    def __init__(
        self, status: int, detail: str, errors: Iterable[InvalidRender] = (), **headers: str
    ) -> None:
        super().__init__(detail)
        self.body: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
        }
        fields = [{"field": error.field, "message": error.message} for error in errors]
        if fields:
            self.body["errors"] = fields
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def response(self) -> JsonResponse:
        """The problem as a reply."""
        return JsonResponse(
            self.body,
            status=self.body["status"],
            content_type="application/problem+json",
            headers=self.headers,
        )


@method_decorator(csrf_exempt, name="dispatch")
class ApiView(View):
    """Who calls, how much, in what form: refused in this order, before anything is read."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            self.authenticate(request)
            if request.method == "POST" and hasattr(self, "post"):
                _check_body_headers(request)
            response = self._checked_dispatch(request, *args, **kwargs)
        except Problem as problem:
            response = problem.response()
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    def authenticate(self, request: HttpRequest) -> None:
        """Only a session counts so far. No redirect: a program cannot log in on a page."""
        if not request.user.is_authenticated:
            raise Problem(
                401,
                "Log in first: a session is needed.",
                WWW_Authenticate='Session realm="renders"',
            )

    def _checked_dispatch(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Django's own CSRF check, its refusal turned into a problem."""
        passed = False

        def handle(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            nonlocal passed
            passed = True
            return super(ApiView, self).dispatch(request, *args, **kwargs)

        if not hasattr(self, str(request.method).lower()):
            return self.http_method_not_allowed(request)
        response = csrf_protect(handle)(request, *args, **kwargs)
        if not passed:
            raise Problem(403, "Send the CSRF cookie's token in the X-CSRFToken header.")
        return response

    def http_method_not_allowed(
        self, request: HttpRequest, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        raise Problem(
            405,
            f"{request.method} is not possible here.",
            Allow=", ".join(name.upper() for name in self.http_method_names if hasattr(self, name)),
        )


class RenderList(ApiView):
    """`/api/renders/`."""

    def get(self, request: HttpRequest) -> JsonResponse:
        """The newest renders: `?limit=` (up to 200), `?status=`."""
        errors = []
        limit = request.GET.get("limit", str(DEFAULT_LIMIT))
        status = request.GET.get("status")
        if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MAX_LIMIT):
            errors.append(InvalidRender("limit", f"A whole number from 1 to {MAX_LIMIT}."))
        if status is not None and status not in Status.values:
            errors.append(InvalidRender("status", f"One of: {', '.join(Status.values)}."))
        if errors:
            raise Problem(422, "The query is not acceptable.", errors)
        renders = _visible(request)
        if status:
            renders = renders.filter(status=status)
        rows = renders[: int(limit)]
        return JsonResponse({"renders": [represent(request, row) for row in rows]})

    def post(self, request: HttpRequest) -> JsonResponse:
        """Make a render: 202, and where to look for it."""
        fields = _read_object(request)
        errors = [
            InvalidRender(name, "Unknown field.") for name in fields if name not in REQUEST_FIELDS
        ]
        known = {name: value for name, value in fields.items() if name in REQUEST_FIELDS}
        if "prompt" not in fields:
            errors.append(InvalidRender("prompt", "This field is needed."))
        errors += request_errors(known)
        if errors:
            raise Problem(422, "The request for a render is not acceptable.", errors)
        render = services.create_render(user=request.user, **known)
        if not _visible(request).filter(pk=render.pk).exists():
            raise Problem(409, "This reference belongs to another render; choose another one.")
        body = represent(request, render)
        return JsonResponse(body, status=202, headers={"Location": body["url"]})


class RenderDetail(ApiView):
    """`/api/renders/<id>/`."""

    def get(self, request: HttpRequest, pk: UUID) -> JsonResponse:
        """One render."""
        render = _visible(request).filter(pk=pk).first()
        if render is None:
            raise Problem(404, "There is no such render, or it is not yours.")
        return JsonResponse(represent(request, render))


class Nothing(ApiView):
    """Any other address below `/api/renders/`."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        return Problem(404, "There is nothing at this address.").response()


def represent(request: HttpRequest, render: RenderJob) -> dict[str, Any]:
    """A render as the API shows it: media by the app's own addresses, never Sume's."""
    error = None
    if render.is_terminal and render.error_code:
        error = {"code": render.error_code, "message": render.error_message}
    return {
        "id": render.pk,
        "kind": render.kind,
        "model": render.model,
        "prompt": render.prompt,
        "params": render.params,
        "priority": render.priority,
        "reference": render.reference,
        "status": render.status,
        "sume_status": render.sume_status,
        "created_at": render.created_at,
        "submitted_at": render.submitted_at,
        "finished_at": render.finished_at,
        "error": error,
        "artifacts": [
            {
                "type": item.type,
                "content_type": item.content_type,
                "url": request.build_absolute_uri(item.url),
            }
            for item in media(render)
        ],
        "cost_usd_micros": render.cost_usd_micros,
        "retry_of": render.retry_of_id,
        "url": request.build_absolute_uri(reverse("renders:api_detail", args=[render.pk])),
        "html_url": request.build_absolute_uri(render.get_absolute_url()),
    }


def _visible(request: HttpRequest) -> QuerySet[RenderJob]:
    return RenderJob.objects.visible_to(request.user).defer("request_body")


def _check_body_headers(request: HttpRequest) -> None:
    if request.content_type != "application/json":
        raise Problem(415, "Send the body as application/json.", Accept="application/json")
    length = str(request.META.get("CONTENT_LENGTH") or "")
    _check_size(int(length[:20]) if length.isdigit() else 0)


def _check_size(size: int) -> None:
    if size > MAX_BODY_BYTES:
        raise Problem(413, f"The body is larger than {MAX_BODY_BYTES:,} bytes.")


def _read_object(request: HttpRequest) -> dict[str, Any]:
    _check_size(len(request.body))
    try:
        fields = parse_json(request.body.decode())
    except UnicodeDecodeError:
        raise Problem(400, "The body is not UTF-8.") from None
    except ValueError as error:
        raise Problem(400, str(error)) from None
    if not isinstance(fields, dict):
        raise Problem(400, 'The body must be a JSON object, for instance {"prompt": "A boat"}.')
    return fields
