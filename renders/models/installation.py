"""Which installation this database belongs to."""

import uuid

from django.db import models


class Installation(models.Model):
    """One row. Its id goes into the keys that follow from references, so no two sites share one."""

    ROW = 1

    row = models.PositiveSmallIntegerField(primary_key=True, default=ROW, editable=False)
    uuid = models.UUIDField(default=uuid.uuid4, editable=False)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.uuid)
