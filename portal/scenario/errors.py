"""How a case can fail."""

from __future__ import annotations


class Failed(Exception):
    """The case failed; the message says what was seen."""


class NotSupported(Failed):
    """A word that scenario files know and Basalt cannot play yet."""

    def __init__(self, word: str) -> None:
        super().__init__(f"not supported yet: {word}")
