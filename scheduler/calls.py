"""HTTP calls whose answers a cycle waits for. They end in time, whatever the other side does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from time import monotonic
from urllib.parse import urlsplit

Answer = bytes | OSError
PostAll = Callable[[str, Sequence[bytes], float], list[Answer]]
"""(URL, JSON bodies, seconds to wait for each at most) → an answer each, or why there is none. Never raises."""

LARGEST = 10 << 20
"""Bytes of an answer that are read at most."""

_AT_ONCE = 16


class Refusal(OSError):
    """The other side answered, but with no success, or with more than is read."""


class Caller:
    """Posts JSON over connections that are kept, some at a time. After a call that nobody answers the rest is given up."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, "caller")
        self._kept = threading.local()

    def post_all(self, url: str, bodies: Sequence[bytes], seconds: float) -> list[Answer]:
        """See `PostAll`. What cannot be asked costs as long as one call may take, not as many calls as there are."""
        futures = [self._pool.submit(self._post, url, body, seconds) for body in bodies]
        found: list[Answer] = []
        for future in futures:
            answer = _within(future, seconds)
            found.append(answer)
            if isinstance(answer, OSError) and not isinstance(answer, Refusal):
                break
        for future in futures[len(found) :]:
            future.cancel()
        return found + found[-1:] * (len(futures) - len(found))

    def close(self) -> None:
        """End the threads; calls on their way end by themselves."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _post(self, url: str, body: bytes, seconds: float) -> bytes:
        parts, deadline = urlsplit(url), monotonic() + seconds
        where = f"{parts.scheme}://{parts.netloc}"
        known: dict[str, HTTPConnection] = self._kept.__dict__.setdefault("connections", {})
        for connection in filter(None, (known.pop(where, None), _connection(parts.scheme, parts.netloc))):
            reused = connection.sock is not None
            try:
                answer = _exchange(connection, f"{parts.path or '/'}?{parts.query}".rstrip("?"), body, deadline)
            except (RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                connection.close()
                if reused:
                    continue  # it had been closed while nothing was asked
                raise
            except BaseException as error:
                connection.close()
                if isinstance(error, HTTPException):
                    raise Refusal(f"{where} does not speak HTTP: {error!r}") from None
                raise
            known[where] = connection
            return answer
        raise ConnectionError(f"{where} closes its connections")


def _within(future: Future[bytes], seconds: float) -> Answer:
    try:
        return future.result(seconds)
    except NotInTime:
        future.cancel()
        return TimeoutError(f"no answer within {seconds:g} s")
    except OSError as error:
        return error


def _connection(scheme: str, place: str) -> HTTPConnection:
    return HTTPSConnection(place) if scheme == "https" else HTTPConnection(place)


def _exchange(connection: HTTPConnection, path: str, body: bytes, deadline: float) -> bytes:
    _hurry(connection, deadline)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    _hurry(connection, deadline)
    response = connection.getresponse()
    found = _read(connection, response, deadline)
    if response.status != 200:
        raise Refusal(f"{path} answered {response.status}")
    return found


def _read(connection: HTTPConnection, response: HTTPResponse, deadline: float) -> bytes:
    """The whole body, in pieces so that one that trickles in ends in time too."""
    parts: list[bytes] = []
    size = 0
    while True:
        _hurry(connection, deadline)
        part = response.read1(1 << 16)
        if not part:
            response.close()  # not its connection: that is ready for the next request now
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            connection.close()
            raise Refusal(f"the answer is larger than {LARGEST} bytes")


def _hurry(connection: HTTPConnection, deadline: float) -> None:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    connection.timeout = left
    if connection.sock is not None:
        connection.sock.settimeout(left)
