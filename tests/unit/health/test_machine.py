"""What is wrong with this machine: settings, storage, disks, versions."""

import os
import shutil
from collections import namedtuple

import pytest
from django.core.checks import Error, Info, Warning
from django.core.files.base import ContentFile
from django.core.files.storage import InMemoryStorage

from renders.health import environment
from renders.health.findings import Level

Usage = namedtuple("Usage", "total used free")


def codes(found):
    return [one.code for one in found]


def test_the_messages_of_the_checks_are_findings(monkeypatch, settings):
    settings.SILENCED_SYSTEM_CHECKS = ["x.W2"]
    told = [
        Error("Broken. Very much so.", hint="Mend it.", id="x.E1"),
        Warning("Odd", id="x.W1"),
        Warning("Silenced.", id="x.W2"),
        Info("By the way.", id="x.I1"),
        Info("Renders go to Sume: a part of its own says it.", id="renders.I069"),
    ]
    asked = []
    monkeypatch.setattr(environment, "run_checks", lambda **options: asked.append(options) or told)

    found = environment.settings()

    assert [(one.said, one.level) for one in found] == [
        ("Broken (x.E1).", Level.ERROR),
        ("Odd (x.W1).", Level.WARNING),
        ("By the way (x.I1).", Level.INFO),
    ]
    assert found[0].advice == "Mend it." and found[1].advice
    settings.DEBUG = True
    environment.settings()
    assert [one["include_deployment_checks"] for one in asked] == [True, False]


def test_the_versions_are_told_and_an_old_celery_is_wrong(monkeypatch):
    [found] = environment.versions()
    assert "celery 5." in found.said and not found.code

    monkeypatch.setattr(environment, "installed", lambda name: "5.6.3")
    assert codes(environment.versions()) == ["celery-old"]


def test_a_package_that_is_not_there_has_no_version():
    assert environment.installed("no-such-package-here") == ""


def test_the_storage_is_tried_and_left_as_it_was(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"

    assert codes(environment.media()) == [""]
    assert [path for path in settings.MEDIA_ROOT.rglob("*") if path.is_file()] == []


def test_a_storage_that_takes_no_file_is_told_with_the_reason(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.MEDIA_ROOT.write_text("a file where a folder should be")

    [found] = environment.media()

    assert found.code == "storage-fails"
    assert found.said.startswith("The storage of media takes no file (")
    assert str(tmp_path) not in found.said


class Secretive(InMemoryStorage):
    """Fails, and says where it keeps things."""

    def _save(self, name, content):
        raise ValueError("https://bucket.example/?X-Signature=hush")


class Forgetful(InMemoryStorage):
    """Gives back another file than it was given."""

    def _open(self, name, mode="rb"):
        return ContentFile(b"")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Secretive", "takes no file (ValueError: its own error)"),
        ("Forgetful", "gives back another file"),
    ],
)
def test_a_storage_that_fails_in_its_own_way_is_told_without_its_words(settings, name, said):
    backend = {"BACKEND": f"{__name__}.{name}"}
    settings.STORAGES = {**settings.STORAGES, "default": backend}

    [found] = environment.media()

    assert found.code == "storage-fails"
    assert found.said.startswith("The storage of media ") and said in found.said
    assert "hush" not in found.said


def test_where_media_are_only_linked_no_storage_is_tried(settings, tmp_path):
    settings.RENDERS = {**settings.RENDERS, "SAVE_MEDIA": False}
    settings.MEDIA_ROOT = tmp_path / "media"

    assert codes(environment.media()) == [""]
    assert not settings.MEDIA_ROOT.exists()


@pytest.mark.parametrize(
    ("free", "code"), [(5e9, ""), (9e8, "disk-low"), (9e7, "disk-full"), (0, "disk-full")]
)
def test_a_disk_that_gets_full_is_told(monkeypatch, settings, tmp_path, free, code):
    settings.MEDIA_ROOT = tmp_path / "not" / "there" / "yet"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1e12, 0, int(free)))

    assert codes(environment.disks())[-1] == code
    assert os.path.samefile(environment.places()["media"], tmp_path)
