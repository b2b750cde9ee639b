"""The live channel: changes of jobs, queues and GPUs as they happen, over a WebSocket that comes back by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Any, TypedDict

from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, InvalidURI
from websockets.sync.client import ClientConnection, connect

from basalt.client.errors import Refused, ServerFailed, SignedOut, Unreachable
from basalt.client.transport import Transport, failure

SIGNED_OUT = 4401
FIRST, LONGEST = 0.5, 10.0
"""Seconds of the first and the longest pause between two tries to come back."""


class Message(TypedDict, total=False):
    """What a topic says: `changed` rows, `gone` uids; a snapshot begins anew, a delta adds."""

    topic: str
    type: str
    seq: int
    changed: list[dict[str, Any]]
    gone: list[str]
    detail: str
    pods: list[dict[str, Any]]
    events: list[dict[str, Any]]


def listen(
    transport: Transport,
    topics: Mapping[str, Sequence[str] | None],
    *,
    tick: float | None = None,
    on_trouble: Callable[[str], None] | None = None,
) -> Generator[Message | None, None, None]:
    """Messages of topics, each with the uids that are shown of it (None: all). With `tick`, None comes after each quiet spell.

    A connection that is lost is opened again, and what was missed comes then. Raises SignedOut, Unreachable (never answered),
    Refused (a topic that is none).
    """
    seen: dict[str, int] = {}
    pause, was_open = FIRST, False
    while True:
        try:
            with _open(transport) as socket:
                for topic, uids in topics.items():
                    socket.send(json.dumps({"op": "subscribe", "topic": topic, "uids": uids, "seq": seen.get(topic)}))
                pause, was_open = FIRST, True
                yield from _messages(socket, seen, tick)
        except ConnectionClosed as closed:
            if closed.rcvd is not None and closed.rcvd.code == SIGNED_OUT:
                raise SignedOut(
                    f"{transport.server} does not take this token (any more).", hint=f"Sign in: basalt login {transport.server}"
                ) from None
            trouble = f"the connection to {transport.server} is lost"
        except (OSError, TimeoutError, InvalidHandshake) as error:
            if not was_open and (_is_for_good(error) or not transport.has_answered):
                raise _refused(error, transport.server) from error
            trouble = failure(error, transport.server).message
        if on_trouble and pause == FIRST:
            on_trouble(f"{trouble.rstrip('.')}; trying again")
        _rest(pause)
        pause = min(pause * 2, LONGEST)


def _rest(seconds: float) -> None:
    time.sleep(seconds)


def _open(transport: Transport) -> ClientConnection:
    address = transport.server.replace("http", "ws", 1) + "/ws/live/"
    headers = {"Authorization": f"Token {transport.token}"}
    try:
        return connect(address, additional_headers=headers, ssl=transport.tls, open_timeout=10, close_timeout=1, max_size=None)
    except InvalidURI as error:
        raise Refused(str(error)) from error


def _messages(socket: ClientConnection, seen: dict[str, int], tick: float | None) -> Iterator[Message | None]:
    while True:
        try:
            message: Message = json.loads(socket.recv(timeout=tick))
        except TimeoutError:
            yield None
            continue
        if message.get("type") == "error":
            raise Refused(f"{message.get('topic')}: {message.get('detail')}")
        if "seq" in message:
            seen[message["topic"]] = message["seq"]
        yield message


def _is_for_good(error: Exception) -> bool:
    """Whether a server said that there is no live channel, and not only broke off while it was asked."""
    return isinstance(error, InvalidStatus) and error.response.status_code < 500


def _refused(error: Exception, server: str) -> Exception:
    if isinstance(error, InvalidHandshake):
        return ServerFailed(
            f"{server} has no live channel here: {error}.", hint="Is there a proxy in between that lets WebSockets through?"
        )
    found = failure(error, server)
    return found if not isinstance(error, Unreachable) else error
