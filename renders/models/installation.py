"""The id of the installation that this database belongs to."""

import uuid

from django.db import models


class Installation(models.Model):
    """One row. Keys derived from references include its id, so no two sites share a key."""

    ROW = 1

    row = models.PositiveSmallIntegerField(primary_key=True, default=ROW, editable=False)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.uuid)
