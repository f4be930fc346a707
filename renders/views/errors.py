"""What Django answers before any view is asked: in the form that the caller can read.

Name them in the project's `urls.py`: `handler400 = "renders.views.errors.bad_request"` and
`handler500 = "renders.views.errors.server_error"`.
"""

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views import defaults

from renders.api.problems import unacceptable, unexpected


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A host that is not ours, a form that is too large, and the like."""
    if _of_api(request):
        return unacceptable(exception).response()
    if isinstance(exception, RequestDataTooBig):
        megabytes = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) / 10**6
        return render(request, "renders/too_large.html", {"megabytes": megabytes}, status=413)
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest, *args: Any) -> HttpResponse:
    """A fault of ours, outside any view."""
    return unexpected().response() if _of_api(request) else defaults.server_error(request)


def _of_api(request: HttpRequest) -> bool:
    return request.path.startswith(reverse("renders:api_list"))
