"""What Django's error pages and mails may show.

Set `DEFAULT_EXCEPTION_REPORTER_FILTER = "renders.telemetry.error_filter.ErrorFilter"`.
"""

import re

from django.views.debug import SafeExceptionReporterFilter


class ErrorFilter(SafeExceptionReporterFilter):
    """Hides, beside Django's own list, addresses that can hold a password."""

    hidden_settings = re.compile(
        SafeExceptionReporterFilter.hidden_settings.pattern
        + "|(REDIS|BROKER|DATABASE|BACKEND)_URL",
        flags=re.IGNORECASE,
    )
