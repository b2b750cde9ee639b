"""The webhook process's face: reviews over TLS, with a certificate that is read again when its files change."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import structlog
import uvicorn
from cryptography import x509

from cluster.errors import ApiError, BadRequest

log = structlog.get_logger(__name__)

Answer = dict[str, Any]
Review = Callable[[bytes], Answer]

MOST_BYTES = 8 * 2**20
"""Of one review: an object and what it was before, each at most what an etcd takes, and room for JSON."""
AT_ONCE = 8
"""Reviews that are worked on at the same time; others wait."""
CONNECTIONS = 512
LOOK_SECONDS = 2.0
"""Between two looks at the certificate's files."""


class Certificates:
    """The pair of files of a folder, as a TLS context. A pair that does not fit together yet leaves the old one in force."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self._seen: tuple[Any, ...] = ()
        self._context = self.context = _context()
        """For the listening socket: it hands each connection the context that is in force when it comes."""
        self.context.sni_callback = self._choose
        self.ends: datetime | None = None
        """When the certificate in force ends; None while there is none."""

    def look(self) -> bool:
        """Take the files up when they changed; whether a pair is in force. Logs what is wrong with a new one, once."""
        try:
            seen = tuple(
                (path.stat().st_mtime_ns, path.stat().st_ino, path.stat().st_size) for path in (self.certificate, self.key)
            )
        except OSError as error:
            seen = (str(error),)
        if seen != self._seen:
            self._seen = seen
            try:
                self._take()
            except (OSError, ValueError) as error:
                log.warning("the certificate is not taken", folder=str(self.certificate.parent), error=str(error))
        return self.ends is not None

    def _take(self) -> None:
        context = _context()
        context.load_cert_chain(self.certificate, self.key)  # refuses a key that is not the certificate's
        ends = x509.load_pem_x509_certificate(self.certificate.read_bytes()).not_valid_after_utc
        self.context.load_cert_chain(self.certificate, self.key)
        self._context, self.ends = context, ends
        log.info("a certificate is in force", ends=ends.isoformat())

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._context

    def trouble(self) -> str:
        """Why no API server can trust us now; empty when it can."""
        if self.ends is None:
            return f"there is no certificate in {self.certificate.parent} (tls.crt, tls.key)"
        if datetime.now(UTC) >= self.ends:
            return f"the certificate ended {self.ends.isoformat()}"
        return ""


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@dataclass
class WebhookServer:
    """Serves reviews by path until told to stop. `told` hears of each: its path, its answer and how long it took."""

    listener: socket.socket
    certificates: Certificates
    reviews: dict[str, Review]
    told: Callable[[str, Answer | None, float], None] = lambda path, answer, seconds: None
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(AT_ONCE, thread_name_prefix="review"))

    def run(self, stop: threading.Event) -> None:
        """Serve; begins once there is a certificate."""
        while not self.certificates.look():
            if stop.wait(LOOK_SECONDS):
                return
        config = uvicorn.Config(
            self.application,
            interface="asgi3",
            loop="asyncio",
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=CONNECTIONS,
            timeout_keep_alive=120,
            timeout_graceful_shutdown=3,
        )
        config.load()
        config.ssl = self.certificates.context
        server = uvicorn.Server(config)
        threading.Thread(target=self._watch, args=(stop, server), name="certificates", daemon=True).start()
        # A listening socket is closed by the server that used it: the next run, after a failure, needs it too.
        server.run([self.listener.dup()])

    def _watch(self, stop: threading.Event, server: uvicorn.Server) -> None:
        while not stop.wait(LOOK_SECONDS):
            self.certificates.look()
        server.should_exit = True

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI: POST of a review to one of the paths."""
        path = scope["path"].rstrip("/")
        began = time.monotonic()
        review = self.reviews.get(path)
        if review is None:
            await _say(send, 404, f"there are {', '.join(self.reviews)}\n")
        elif scope["method"] != "POST":
            await _say(send, 405, "reviews come by POST\n")
        elif _header(scope, b"content-type").partition(b";")[0].strip() != b"application/json":
            await _say(send, 415, "a review is application/json\n")
        elif (body := await _body(scope, receive)) is None:
            await _say(send, 413, f"a review has at most {MOST_BYTES} bytes\n")
        else:
            status, answer = await asyncio.get_running_loop().run_in_executor(self._pool, _reviewed, review, body)
            self.told(path, answer if status == 200 else None, time.monotonic() - began)
            await _send(send, status, b"application/json", orjson.dumps(answer))


def _reviewed(review: Review, body: bytes) -> tuple[int, Answer]:
    """An answer, or the status that tells the API server that there is none; its `failurePolicy` says what that means."""
    try:
        return 200, review(body)
    except BadRequest as error:
        return 400, {"error": error.message}
    except ApiError as error:
        log.warning("a review could not be answered", error=error.message)
        return 503, {"error": error.message}
    except Exception as error:
        log.exception("a review failed")
        return 500, {"error": f"{type(error).__name__} while reviewing: see the log"}


def _header(scope: Any, name: bytes) -> bytes:
    return next((bytes(value).lower() for key, value in scope["headers"] if key == name), b"")


async def _body(scope: Any, receive: Any) -> bytes | None:
    """The whole body; None when there is too much of it."""
    length = _header(scope, b"content-length")
    if length.isdigit() and int(length) > MOST_BYTES:
        return None
    pieces, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return b"".join(pieces)
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > MOST_BYTES:
            return None
        if not message.get("more_body"):
            return b"".join(pieces)


async def _say(send: Any, status: int, text: str) -> None:
    await _send(send, status, b"text/plain; charset=utf-8", text.encode())


async def _send(send: Any, status: int, media: bytes, body: bytes) -> None:
    headers = [(b"content-type", media), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
