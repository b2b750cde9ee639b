"""The rate of writes, and the pauses that a server asks for."""

from __future__ import annotations

import pytest

from cluster.kubernetes.pace import Pace, asked_pause


class Time:
    """Time that passes while somebody sleeps."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += seconds


@pytest.mark.parametrize(("rate", "writes"), [(50, 150), (10, 21), (0, 10_000)])
def test_no_more_writes_than_the_rate(rate: float, writes: int) -> None:
    time = Time()
    pace = Pace(rate, now=time.now, sleep=time.sleep)
    for _ in range(writes):
        pace.wait()
    assert time.at - 100.0 == pytest.approx(writes / rate - 0.2 - 1 / rate if rate else 0.0)


def test_what_was_not_used_is_not_saved_up() -> None:
    time = Time()
    pace = Pace(10, now=time.now, sleep=time.sleep)
    pace.wait()
    time.at += 60
    begin = time.at
    for _ in range(12):
        pace.wait()
    assert time.at - begin == pytest.approx(0.9)


BUDGET = b'{"kind":"Status","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget"}]}}'


@pytest.mark.parametrize(
    ("status", "after", "said", "pause"),
    [
        (429, "1", b"Too many requests, please try again later.", 1.0),
        (429, "0", b"", 0.1),
        (429, "3600", b"", 5.0),
        (429, None, b"", None),
        (429, "Wed, 21 Oct 2026 07:28:00 GMT", b"", None),
        (429, "10", BUDGET, None),
        (503, "2", b"", 2.0),
        (503, None, b"", None),
        (500, "1", b"", None),
        (201, None, b"", None),
    ],
)
def test_only_a_server_that_has_too_much_to_do_is_asked_again(
    status: int, after: str | None, said: bytes, pause: float | None
) -> None:
    assert asked_pause(status, after, said) == pause
