"""The workspace of each user's renders, if nothing else chooses one."""

from django.conf import settings
from django.db import models


class UserWorkspace(models.Model):
    """A user's own workspace; a user without a row has the default one."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", primary_key=True
    )
    workspace = models.CharField(max_length=40, help_text="Where this person's renders are made.")

    class Meta:
        verbose_name = "workspace of a user"
        verbose_name_plural = "workspaces of users"

    def __str__(self) -> str:
        return f"{self.user}: {self.workspace}"
