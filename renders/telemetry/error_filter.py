"""The filter of Django's error pages and mails: it hides URLs that can hold a password.

Set `DEFAULT_EXCEPTION_REPORTER_FILTER = "renders.telemetry.error_filter.ErrorFilter"`.
"""

import re

from django.views.debug import SafeExceptionReporterFilter


class ErrorFilter(SafeExceptionReporterFilter):
    """Django's filter, extended by the settings of URLs that can hold a password."""

    hidden_settings = re.compile(
        SafeExceptionReporterFilter.hidden_settings.pattern
        + "|(REDIS|BROKER|DATABASE|BACKEND)_URL",
        flags=re.IGNORECASE,
    )
