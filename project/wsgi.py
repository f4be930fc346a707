"""WSGI entry point: `project.wsgi:application`. It serves the static files too."""

import os

from django.core.wsgi import get_wsgi_application

from renders.conf.startup import refuse_unsafe_settings, say_where_renders_go

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

application = get_wsgi_application()
# Raised from here, servers give up; with an exit of their own, some would try again for ever.
refuse_unsafe_settings()
say_where_renders_go()
