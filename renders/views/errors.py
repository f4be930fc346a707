"""Error pages outside of views: HTML for pages, problem documents for the API.

Name them in the project's `urls.py`: `handler400 = "renders.views.errors.bad_request"`,
`handler404 = "renders.views.errors.page_not_found"` and
`handler500 = "renders.views.errors.server_error"`.
"""

from typing import Any

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.urls import reverse
from django.views import defaults

from renders.presentation.problems import Problem, unacceptable, unexpected
from renders.views.policy import keep_to_site

NOT_THERE = {
    "title": "Nothing is here",
    "text": "The address is misspelt, or the render is somebody else's or gone.",
}
OUR_FAULT = {
    "title": "This did not work",
    "text": "It is a fault of the site, and it was noted. Try again in a moment.",
}


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """The reply to a foreign host name, a form that is too large, and the like."""
    if _of_api(request):
        return unacceptable(exception).response()
    if isinstance(exception, RequestDataTooBig):
        megabytes = (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 0) / 10**6
        page = render(request, "renders/too_large.html", {"megabytes": megabytes}, status=413)
        return keep_to_site(page)
    return keep_to_site(defaults.bad_request(request, exception))


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """The reply for an address or a render that does not exist."""
    if _of_api(request):
        return Problem(404, "There is nothing at this address.").response()
    return keep_to_site(render(request, "renders/error.html", NOT_THERE, status=404))


def server_error(request: HttpRequest, *args: Any) -> HttpResponseBase:
    """The reply to an unhandled exception. It needs no database, which may be the cause."""
    if _of_api(request):
        return unexpected().response()
    return keep_to_site(HttpResponse(render_to_string("renders/error.html", OUR_FAULT), status=500))


def _of_api(request: HttpRequest) -> bool:
    return request.path.startswith(reverse("renders:api_list"))
