"""The base of all API views: checks before the view's own work, and headers after it."""

import logging
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.core.signals import got_request_exception
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from renders.api import throttling
from renders.api.authentication import authenticate
from renders.api.reading import check_body_headers
from renders.presentation.problems import Problem, unacceptable, unexpected

logger = logging.getLogger(__name__)


@method_decorator([csrf_exempt, login_not_required], name="dispatch")
class ApiView(View):
    """Checks authentication, rate, method and headers, in this order, before reading the body."""

    needs_body = False
    public = False  # True: for callers without authentication too

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.quota: throttling.Quota | None = None
        try:
            response = self._answer(request, *args, **kwargs)
        except Problem as problem:
            response = problem.response()
        except Http404 as error:
            response = Problem(404, str(error)).response()
        except PermissionDenied as error:
            response = Problem(403, str(error)).response()
        except SuspiciousOperation as error:
            logger.warning("%s %s refused: %s.", request.method, request.path, type(error).__name__)
            response = unacceptable(error).response()
        except Exception:
            # Error collectors listen to Django's signal.
            got_request_exception.send(sender=type(self), request=request)
            logger.exception("%s %s failed.", request.method, request.path)
            response = unexpected().response()
        if self.quota:
            for name, value in self.quota.headers.items():
                response.headers[name] = value
        response.headers.setdefault("Cache-Control", "private, no-store")
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response

    def _answer(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "OPTIONS":
            return HttpResponse(status=204, headers={"Allow": self._methods()})
        by_token = False
        if not self.public:
            by_token = authenticate(request)
            self.quota = throttling.count_request(request.user)
        if self.quota:
            self.quota.check()
        if request.method not in self._methods().split(", "):
            raise Problem(405, f"{request.method} is not possible here.", Allow=self._methods())
        if request.method == "POST":
            check_body_headers(request, needed=self.needs_body)
        if by_token:
            return super().dispatch(request, *args, **kwargs)
        return self._protected(request, *args, **kwargs)

    def _protected(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """The view's response after Django's CSRF check. Raises `Problem` if that fails."""
        passed = False

        def handle(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            nonlocal passed
            passed = True
            return super(ApiView, self).dispatch(request, *args, **kwargs)

        response = csrf_protect(handle)(request, *args, **kwargs)
        if not passed:
            raise Problem(
                403, "Send the CSRF cookie's token in the X-CSRFToken header.", code="csrf"
            )
        return response

    def _methods(self) -> str:
        names = [name for name in self.http_method_names if hasattr(self, name)]
        return ", ".join(name.upper() for name in names)
