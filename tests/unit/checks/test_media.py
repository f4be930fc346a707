"""Where pictures are kept."""

import pytest
from django.core.checks import Error

from renders.checks import check_settings

from .conftest import GOOD, turn_on_debug

FILES = "django.core.files.storage.FileSystemStorage"
STATIC = {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}


def found():
    return check_settings(None)


def use(settings, backend=FILES, **options):
    settings.STORAGES = {**STATIC, "default": {"BACKEND": backend, "OPTIONS": options}}


def test_files_without_a_folder_are_an_error(settings):
    use(settings)
    settings.MEDIA_ROOT = ""

    assert found() == [
        Error(
            "MEDIA_ROOT is empty: finished pictures would be scattered over the folder in which "
            "each worker was started.",
            hint="Set DJANGO_MEDIA_ROOT to a folder that workers and web server share.",
            id="renders.E053",
        )
    ]

    turn_on_debug(settings)
    assert found() == []


@pytest.mark.parametrize("by", ["MEDIA_ROOT", "location"])
@pytest.mark.parametrize("folder", ["static", "static/media", "static/x/../media"])
def test_pictures_among_static_files_are_an_error(settings, tmp_path, by, folder):
    settings.STATIC_ROOT = str(tmp_path / "static")
    use(settings, **({"location": tmp_path / folder} if by == "location" else {}))
    settings.MEDIA_ROOT = tmp_path / (folder if by == "MEDIA_ROOT" else "media")

    assert found() == [
        Error(
            "MEDIA_ROOT lies in STATIC_ROOT, whose files are served to everybody: "
            "so would be everybody's pictures.",
            hint="Set DJANGO_MEDIA_ROOT to a folder outside of it.",
            id="renders.E054",
        )
    ]


@pytest.mark.parametrize("folder", ["media", "static-media", "static/../media"])
def test_pictures_beside_static_files_are_fine(settings, tmp_path, folder):
    settings.STATIC_ROOT, settings.MEDIA_ROOT = tmp_path / "static", tmp_path / folder
    use(settings)

    assert found() == []


def test_pictures_in_memory_are_an_error(settings):
    use(settings, "django.core.files.storage.InMemoryStorage")

    assert found() == [
        Error(
            "Finished pictures would be kept in memory: gone with the worker that stored them.",
            hint="Name another storage in RENDERS_MEDIA_STORAGE, or another BACKEND for it in "
            "STORAGES.",
            id="renders.E055",
        )
    ]

    settings.RENDERS = {**GOOD, "SAVE_MEDIA": 0}
    assert found() == []


def test_a_bucket_needs_no_folder(settings):
    use(settings, "storages.backends.s3.S3Storage", bucket_name="b")
    settings.MEDIA_ROOT = ""

    assert found() == []
