"""The studio's own tests, run by its own `manage.py test`: the app under another roof."""

import json
import re
from io import StringIO

from django.conf import settings
from django.contrib import admin
from django.core.cache import cache
from django.core.management import call_command
from django.test import TestCase, override_settings
from django.urls import reverse
from django.utils import timezone

from renders.checks.celery import name_of, value_of
from renders.models import RenderJob
from renders.services import create_render
from renders.testing import StandIn
from studio.people.models import Person

ANN = "ann@example.com"


class StudioCase(TestCase):
    """A stand-in for Sume, and two people."""

    def setUp(self):
        cache.clear()
        self.sume = self.enterContext(StandIn())
        self.ann = Person.objects.create_user(ANN)
        self.root = Person.objects.create_superuser("root@example.com")

    def fields(self, url):
        """The hidden fields of the form at this address."""
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', self.get(url))
        return dict(found)

    def get(self, url, **headers):
        response = self.client.get(url, headers=headers)
        assert response.status_code == 200, (url, response.status_code, response.headers)
        return response.text

    def file(self, url, **headers):
        return self.client.get(url, headers=headers).getvalue()


class Pages(StudioCase):
    def test_strangers_are_sent_to_the_studios_own_login(self):
        self.ann.set_password("a long password")
        self.ann.save()
        response = self.client.get("/studio/renders/")

        self.assertRedirects(response, "/enter/?next=/studio/renders/")
        response = self.client.post(response.url, {"username": ANN, "password": "a long password"})
        self.assertRedirects(response, "/studio/renders/")

    def test_a_render_is_added_and_shown_to_its_end(self):
        self.client.force_login(self.ann)
        data = {"prompt": "A boat", "kind": "image"} | self.fields("/studio/renders/new/")
        response = self.client.post("/studio/renders/new/", data)
        self.assertRedirects(response, "/studio/renders/")
        render = RenderJob.objects.get(created_by=self.ann)

        done = self.sume.run_to_end(render)

        assert done.status == "completed"
        detail = self.get(f"/studio/renders/{render.pk}/")
        assert "It is ready" in detail
        assert done.artifacts[0]["file"]
        assert self.file(f"/studio/renders/{render.pk}/artifacts/0/").startswith(b"\x89PNG")
        live = self.get(f"/studio/renders/{render.pk}/live/")
        assert f'hx-get="/studio/renders/{render.pk}/live/"' in live
        assert "A boat" in self.get("/studio/renders/")

    def test_the_studios_own_base_is_round_every_page(self):
        self.client.force_login(self.ann)
        for name in ("gallery", "new", "charts"):
            page = self.get(reverse(f"renders:{name}"))
            assert "The studio</a>" in page and ANN in page, name
            assert 'href="/studio/renders/new/"' in page
            assert '"/assets/renders/renders.css"' in page
            assert "Log out" not in page  # the studio has no such address
            # Nothing leads out of where the pages are.
            links = re.findall(r'(?:href|src|action|hx-get)="(/[^"]*)"', page)
            outside = [link for link in links if not link.startswith(("/studio/", "/assets/"))]
            assert outside == ["/"], outside

    def test_figures_in_drawings_are_not_written_as_in_german(self):
        self.sume.run_to_end(create_render("A boat", user=self.ann))
        self.client.force_login(self.ann)
        drawings = re.findall(
            r"<svg class=\"chart\".*?</svg>", self.get("/studio/renders/charts/"), re.DOTALL
        )

        assert drawings
        for drawing in drawings:
            for x in re.findall(r'\s(?:x|y|width|height|viewBox)="([^"]*)"', drawing):
                assert re.fullmatch(r"-?[\d.]+( [\d.]+)*%?", x), x

    def test_whoever_was_logged_out_is_led_to_the_studios_login(self):
        render = create_render("A boat", user=self.ann)

        assert 'href="/enter/"' in self.get(f"/studio/renders/{render.pk}/live/")
        assert 'href="/enter/"' in self.get("/studio/renders/live/")

    def test_times_are_new_yorks(self):
        render = self.sume.run_to_end(create_render("A boat", user=self.ann))
        self.client.force_login(self.ann)
        here = timezone.localtime(render.created_at)

        assert here.utcoffset().total_seconds() < 0
        assert f"{here:%H:%M}" in self.get(f"/studio/renders/{render.pk}/")


class Api(StudioCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.root)
        data = {"user": self.ann.pk, "name": "shop", "expires_at_0": "", "expires_at_1": ""}
        page = self.client.post("/desk/renders/apitoken/add/", data).text
        self.headers = {
            "Authorization": f"Bearer {re.findall('renders_[A-Za-z0-9_-]{43}', page)[0]}"
        }
        self.client.logout()

    def test_a_render_is_made_and_its_addresses_lead_to_it(self):
        response = self.client.post(
            "/studio/api/renders/",
            {"prompt": "A boat"},
            content_type="application/json",
            headers=self.headers | {"Idempotency-Key": "one"},
        )
        made = response.json()
        assert response.status_code == 202, made
        assert response["Location"].endswith(f"/studio/api/renders/{made['id']}/")
        assert RenderJob.objects.get().created_by == self.ann

        self.sume.run_all_to_end()

        told = json.loads(self.get(made["url"], **self.headers))
        assert told["status"] == "completed"
        assert made["html_url"].endswith(f"/studio/renders/{made['id']}/")
        url = told["artifacts"][0]["url"]
        assert "/studio/api/renders/" in url
        assert self.file(url, **self.headers).startswith(b"\x89PNG")

    def test_its_document_says_where_it_is(self):
        document = json.loads(self.get("/studio/api/renders/openapi.json"))

        assert document["servers"] == [{"url": "/studio"}]
        assert "/api/renders/" in document["paths"]
        assert document["components"]["securitySchemes"]["session"]["name"] == "studio"

    def test_what_django_refuses_itself_looks_like_the_api(self):
        response = self.client.get("/studio/api/renders/", headers={"host": "evil.example"})

        assert response["Content-Type"] == "application/problem+json"


class Desk(StudioCase):
    def setUp(self):
        super().setUp()
        self.client.force_login(self.root)
        assert type(admin.site._wrapped).__name__ == "Desk"

    def test_a_render_is_added_and_shown(self):
        add = "/desk/renders/renderjob/add/"
        data = self.fields(add) | {"kind": "image", "model": "sume/auto", "priority": "0"}
        data |= {"prompt": "A fox", "params": "{}", "reference": ""}
        response = self.client.post(add, data)
        render = RenderJob.objects.get(prompt="A fox")
        self.assertRedirects(response, f"/desk/renders/renderjob/{render.pk}/change/")
        self.sume.run_to_end(render)

        assert "The desk" in self.get("/desk/")
        assert "Needs attention" in self.get("/desk/")
        listed = self.get("/desk/renders/renderjob/?q=root@example.com")
        assert "A fox" in listed
        shown = self.get(f"/desk/renders/renderjob/{render.pk}/change/")
        assert "Task results" not in shown  # they are not kept here
        assert self.get("/desk/renders/gate/")
        assert "A fox" in self.get(f"/desk/renders/renderjob/?who={self.root.pk}")

    def test_many_are_added(self):
        form = reverse("admin:renders_renderjob_add_many")
        assert form.startswith("/desk/")
        data = {"kind": "image", "model": "sume/auto", "priority": "0", "params": "{}"}
        data |= self.fields(form) | {"prompts": "A boat\nA fox"}
        shown = self.client.post(form, data, follow=True)
        assert "2 renders would be added" in shown.text
        [[preview, _]] = shown.redirect_chain
        added = self.client.post(preview, follow=True)
        assert added.request["PATH_INFO"] == "/desk/renders/renderjob/"
        assert "A fox" in added.text and RenderJob.objects.count() == 2


class Webhooks(StudioCase):
    def test_sume_is_told_the_address_below_the_prefix(self):
        ours = {"PUBLIC_URL": "https://studio.example.com", "WEBHOOK_SECRET": "w" * 32}
        with override_settings(RENDERS={**settings.RENDERS, **ours}):
            render = self.sume.run_to_end(create_render("A boat"))
            response = self.client.post("/studio/webhooks/sume/", b"{}", "application/json")

        assert "https://studio.example.com/studio/webhooks/sume/" in str(render.request_body)
        assert response.status_code == 401


class Commands(StudioCase):
    def test_a_render_is_created_for_an_address(self):
        out = StringIO()
        call_command("render", "A boat", "--user", ANN, "--no-follow", stdout=out)
        assert RenderJob.objects.get().created_by == self.ann
        assert "/studio/renders/" in out.getvalue()


class Celery(StudioCase):
    def test_the_settings_are_found_under_the_studios_own_name(self):
        assert name_of("task_routes") == "STUDIO_CELERY_TASK_ROUTES"
        assert value_of("task_soft_time_limit") == 150
        assert value_of("worker_concurrency") is None
