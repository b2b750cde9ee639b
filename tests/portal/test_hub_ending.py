"""The hub ends its tasks, also such as swallow a cancellation."""

from __future__ import annotations

import asyncio
import contextlib

from portal.live.hub import _ended


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    met = 0

    async def swallows() -> None:
        nonlocal met
        while met < 2:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            met += 1

    task = asyncio.ensure_future(swallows())
    await asyncio.sleep(0)
    await asyncio.wait_for(_ended({task}), 30)
    assert (met, task.done()) == (2, True)
