"""Where finished media lie."""

from django.core.files.storage import Storage, storages

from renders.conf import conf


def storage() -> Storage:
    """Any storage of Django's `STORAGES`: what is read and written goes through its methods."""
    return storages[conf.MEDIA_STORAGE]
