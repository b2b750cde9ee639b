"""What an action is: one pass over a session, in the order of the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from scheduler.conf import Arguments
    from scheduler.framework.session import Session


class Action(Protocol):
    """One scheduler action. The constructor reads its arguments and raises `ConfError` for what does not fit."""

    name: ClassVar[str]

    def __init__(self, arguments: Arguments) -> None: ...

    def execute(self, ssn: Session) -> None:
        """Run over the session."""
        ...
