"""An API server's answer with a log, read as it comes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import urllib3

READ_SECONDS, FOLLOWED_SECONDS = 30.0, 3600.0
"""Longest silence of a log that is read once, and of one that is followed."""
_CHUNK = 2**16


class LogConnection:
    """See `cluster.logs.remote.Connection`."""

    def __init__(self, response: Any) -> None:
        self._response = response

    def chunks(self) -> Iterator[bytes]:
        """Bytes as they come. A connection that breaks ends them: whoever follows asks again."""
        try:
            yield from self._response.stream(_CHUNK, decode_content=True)
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
            return
        finally:
            self._response.release_conn()

    def close(self) -> None:
        """Break it off, also while another thread waits for bytes."""
        with contextlib.suppress(Exception):  # whatever a socket says that is being closed
            self._response.shutdown() if hasattr(self._response, "shutdown") else self._response.close()
