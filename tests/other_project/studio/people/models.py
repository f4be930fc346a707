import uuid

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.db import models


class People(BaseUserManager):
    """Makes users of an address and a password."""

    def create_user(self, email, password=None, **fields):
        person = self.model(email=self.normalize_email(email), **fields)
        person.set_password(password)
        person.save()
        return person

    def create_superuser(self, email, password=None, **fields):
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class Person(AbstractBaseUser, PermissionsMixin):
    """A user without a name, who logs in with an address."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects = People()

    USERNAME_FIELD = EMAIL_FIELD = "email"

    def __str__(self):
        return self.email
