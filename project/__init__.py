from project.environment import load_file

load_file()  # before anything reads the environment

from project.celery import app as celery_app  # noqa: E402

__all__ = ["celery_app"]
