"""Which workspace a person's renders are made in, where nothing else says so."""

from django.conf import settings
from django.db import models


class UserWorkspace(models.Model):
    """A person's own workspace; without a row it is the default one."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", primary_key=True
    )
    workspace = models.CharField(max_length=40, help_text="Where this person's renders are made.")

    class Meta:
        verbose_name = "workspace of a user"
        verbose_name_plural = "workspaces of users"

    def __str__(self) -> str:
        return f"{self.user}: {self.workspace}"
