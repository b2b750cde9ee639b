"""What a list may be narrowed by, beside it: dimensions, each with the values that occur and how many rows have them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A value to narrow by; `mark` is a state mark where the dimension is the state."""

    value: str
    label: str
    count: int
    is_chosen: bool
    mark: str = ""

    @property
    def next(self) -> str | None:
        """What the address has once it is pressed: None lets a chosen one go."""
        return None if self.is_chosen else self.value


@dataclass(frozen=True, slots=True)
class Panel:
    """One dimension; `more` are the choices behind a fold, `left_out` those that are too many for it."""

    name: str
    title: str
    choices: list[Choice]
    more: list[Choice]
    left_out: int = 0
