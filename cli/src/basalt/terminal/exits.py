"""Exit codes. Scripts rely on them: they are in the documentation, and do not change."""

from __future__ import annotations

from enum import IntEnum

from basalt.client.errors import (
    BasaltError,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    ServerFailed,
    SignedOut,
    Unreachable,
    Untrusted,
)


class Exit(IntEnum):
    """What a command's exit code means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    SIGNED_OUT = 3
    FORBIDDEN = 4
    NOT_FOUND = 5
    REFUSED = 6
    CONFLICT = 7
    UNREACHABLE = 8
    TIMED_OUT = 9
    PARTIAL = 10
    ENDED_OTHERWISE = 11
    INTERRUPTED = 130
    VOLCANO = 255


class ConfigError(BasaltError):
    """The configuration cannot be used."""


class Missing(BasaltError):
    """A name or option that the command cannot do without."""


class TimedOut(BasaltError):
    """What was waited for did not come in time."""


class EndedOtherwise(BasaltError):
    """What was waited for cannot come any more."""


class Partial(BasaltError):
    """Of several things some were done and some were not."""


_CODES: dict[type[BasaltError], Exit] = {
    Missing: Exit.USAGE,
    SignedOut: Exit.SIGNED_OUT,
    Forbidden: Exit.FORBIDDEN,
    NotFound: Exit.NOT_FOUND,
    Refused: Exit.REFUSED,
    ConfigError: Exit.REFUSED,
    Conflict: Exit.CONFLICT,
    Unreachable: Exit.UNREACHABLE,
    Untrusted: Exit.UNREACHABLE,
    ServerFailed: Exit.UNREACHABLE,
    TimedOut: Exit.TIMED_OUT,
    Partial: Exit.PARTIAL,
    EndedOtherwise: Exit.ENDED_OTHERWISE,
}


def code_of(error: BasaltError) -> Exit:
    """The exit code of an error."""
    return _CODES.get(type(error), Exit.FAILED)
