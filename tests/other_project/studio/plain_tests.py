"""With plain_settings: no admin."""

from django.apps import apps
from django.test import TestCase

from renders.services import create_render
from renders.testing import StandIn
from studio.people.models import Person


class Pages(TestCase):
    def test_all_are_there_and_none_leads_to_the_admin(self):
        assert not apps.is_installed("django.contrib.admin")
        staff = Person.objects.create_superuser("root@example.com")
        self.client.force_login(staff)
        with StandIn() as sume:
            render = sume.run_to_end(create_render("A boat", user=staff))
        pages = ["/renders/", "/renders/new/", "/renders/charts/", render.get_absolute_url()]
        for path in [*pages, "/api/renders/", "/healthz"]:
            response = self.client.get(path)
            assert response.status_code == 200, path
            assert "Admin" not in response.text, path
