"""The webhook process's face: who is answered how."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import orjson
import pytest

from cluster.errors import BadRequest, Unavailable
from portal.webhooks import server as face
from portal.webhooks.server import Certificates, WebhookServer


def _raise(error: Exception) -> Any:
    raise error


REVIEWS = {
    "/validate": lambda body: {"response": {"allowed": True, "got": len(body)}},
    "/bad": lambda body: _raise(BadRequest("no review")),
    "/away": lambda body: _raise(Unavailable("the cluster does not answer")),
    "/fault": lambda body: _raise(KeyError("x")),
}


async def ask(
    tmp_path: Path, path: str, method: str = "POST", media: str = "application/json", body: bytes = b"{}"
) -> tuple[int, bytes]:
    sent: list[dict[str, Any]] = []
    pieces = [body[start : start + 65_536] for start in range(0, len(body), 65_536)] or [b""]
    coming = iter(
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1} for number, piece in enumerate(pieces)
    )

    async def receive() -> dict[str, Any]:
        return next(coming)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with socket.socket() as listener:
        served = WebhookServer(listener, Certificates(tmp_path), REVIEWS)
        scope = {"type": "http", "path": path, "method": method, "headers": [(b"content-type", media.encode())]}
        await served.application(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def test_a_review_is_answered(tmp_path: Path) -> None:
    status, body = await ask(tmp_path, "/validate", media="application/json; charset=utf-8", body=b"[1]")
    assert (status, orjson.loads(body)) == (200, {"response": {"allowed": True, "got": 3}})


@pytest.mark.parametrize(
    ("path", "method", "media", "status"),
    [
        ("/elsewhere", "POST", "application/json", 404),
        ("/validate", "GET", "application/json", 405),
        ("/validate", "POST", "text/plain", 415),
        ("/bad", "POST", "application/json", 400),
        ("/away", "POST", "application/json", 503),
        ("/fault", "POST", "application/json", 500),
    ],
)
async def test_what_cannot_be_answered_has_a_status_that_says_so(
    tmp_path: Path, path: str, method: str, media: str, status: int
) -> None:
    assert (await ask(tmp_path, path, method, media))[0] == status


async def test_too_much_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(face, "MOST_BYTES", 100_000)
    assert (await ask(tmp_path, "/validate", body=b"x" * 100_000))[0] == 200
    assert (await ask(tmp_path, "/validate", body=b"x" * 100_001))[0] == 413
