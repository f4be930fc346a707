"""The storage of finished media."""

from django.core.files.storage import Storage, storages

from renders.conf import conf


def storage() -> Storage:
    """The chosen entry of Django's `STORAGES`. Files are read and written only by its methods."""
    return storages[conf.MEDIA_STORAGE]
