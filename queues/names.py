"""How a queue's name stands in an address: as it is, unless a page of all queues has that word for itself."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import get_converters

RESERVED = frozenset({"new", "fairness"})
"""Words behind `/queues/` that are pages of their own."""


def register() -> None:
    """Let addresses say `<queue:name>`; asking twice does no harm."""
    if "queue" not in get_converters():
        register_converter(QueueName, "queue")


class QueueName:
    """A path converter. A queue that is called like a page is written with a tilde, which no name has: `/queues/~fairness/`."""

    regex = "~?[^/~]+"

    def to_python(self, value: str) -> str:
        """The name behind the tilde."""
        return value.removeprefix("~")

    def to_url(self, value: str) -> str:
        """The name, told apart from pages."""
        return f"~{value}" if value in RESERVED else value
