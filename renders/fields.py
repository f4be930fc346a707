"""Fields that fill themselves."""

from django.db import models


class IdempotencyKeyField(models.CharField):
    """`render-job-<row id>`, written when the row is inserted and never again."""

    def pre_save(self, model_instance: models.Model, add: bool) -> str:
        key = f"render-job-{model_instance.pk}"
        setattr(model_instance, self.attname, key)
        return key
