"""What Celery is told, by whatever name the project calls it."""

from typing import Any

from renders import celery_app
from renders.conf import conf

REDIS = ("redis://", "rediss://", "redis+socket://", "sentinel://")
RABBITMQ = ("amqp://", "amqps://", "pyamqp://")


def told(name: str) -> Any:
    """Celery's setting of this name (`broker_url`); None where it is left to Celery."""
    return celery_app.value_of(name)


def broker() -> str:
    """The address of the broker; without one, Celery takes a RabbitMQ on this machine."""
    return str(told("broker_url") or "amqp://")


def used() -> bool:
    """Whether messages are sent at all."""
    return conf.SCHEDULER != "database"
