"""HTTP to one server: how requests are sent and tried again, and how whatever goes wrong becomes one of our errors."""

from __future__ import annotations

import contextlib
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from basalt.client.errors import BasaltError, Refused, ServerFailed, SignedOut, Unreachable, Untrusted, of_problem

Query = Mapping[str, str | float | bool | Sequence[str] | None]
PAUSES = (0.2, 0.8)
"""Seconds before each further try of a request that may be repeated without harm."""
_AGAIN = (502, 503, 504)
_BODY_TYPES = {str: "application/yaml", bytes: "application/yaml"}


class Transport:
    """A server's address, a token, and the certificates it is known by (`ca`: a file; else those of the system)."""

    def __init__(
        self, server: str, token: str = "", *, ca: str = "", timeout: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        self.server = checked_address(server)
        self.token = token
        self.has_answered = False
        self.tls = _trust(ca) if self.server.startswith("https:") else None
        headers = {"Accept": "application/json", "User-Agent": "basalt-cli"}
        if token:
            headers["Authorization"] = f"Token {token}"
        self._http = httpx.Client(
            base_url=f"{self.server}/api/v1/",
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=10.0),
            verify=self.tls if self.tls is not None else True,
            transport=transport,
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, query: Query | None = None) -> Any:
        """The answer to a read, which is tried again when the server does not answer."""
        return self._send("GET", path, query=query, repeatable=True)

    def create(self, path: str, body: Any, query: Query | None = None) -> Any:
        """The answer to a create. A key goes with it, so that it is done once however often it is sent."""
        return self._send("POST", path, query=query, body=body, headers={"Idempotency-Key": str(uuid.uuid4())}, repeatable=True)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, **more: Any) -> Any:
        """The answer to any other request, sent once."""
        return self._send(method, path, query=query, body=body, **more)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        auth: tuple[str, str] | None = None,
        repeatable: bool = False,
    ) -> Any:
        pauses = list(PAUSES) if repeatable else []
        sent: dict[str, Any] = {"params": _params(query), "headers": dict(headers or {}), "auth": auth}
        if isinstance(body, (str, bytes)):
            sent["content"] = body
            sent["headers"]["Content-Type"] = _BODY_TYPES[type(body)]
        elif body is not None:
            sent["json"] = body
        while True:
            try:
                answer = self._http.request(method, path, **sent)
                if answer.status_code not in _AGAIN or not pauses:
                    return self._read(answer)
            except httpx.HTTPError as error:
                failure = self._failure(error)
                if isinstance(failure, Untrusted) or not pauses:
                    raise failure from error
            time.sleep(pauses.pop(0))

    def _read(self, answer: httpx.Response) -> Any:
        if answer.status_code == 204:
            return None
        try:
            body = answer.json()
        except ValueError:
            body = None
        if answer.is_success and body is not None:
            self.has_answered = True
            return body
        if answer.is_redirect:
            where = answer.headers.get("Location", "elsewhere")
            raise ServerFailed(f"{self.server} sends to {where}.", hint="Sign in at that address: basalt login ADDRESS")
        raise (
            self._signed_out()
            if answer.status_code == 401 and not self.token
            else of_problem(answer.status_code, body, self.server)
        )

    def _signed_out(self) -> SignedOut:
        return SignedOut(f"You are not signed in at {self.server}.", hint=f"Sign in: basalt login {self.server}")

    @contextlib.contextmanager
    def stream(self, path: str, query: Query | None = None) -> Iterator[Iterator[str]]:
        """The lines of an answer that goes on; no time-out between them."""
        timeout = httpx.Timeout(None, connect=10.0)
        try:
            with self._http.stream("GET", path, params=_params(query), timeout=timeout) as answer:
                if not answer.is_success:
                    answer.read()
                    self._read(answer)
                self.has_answered = True
                yield answer.iter_lines()
        except httpx.HTTPError as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> BasaltError:
        return failure(error, self.server)


def failure(error: BaseException, server: str) -> BasaltError:
    """What an exception of the network means."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Untrusted(
                f"The certificate of {server} does not match: {cause.verify_message or cause.reason}.",
                hint=f"If it is your own authority's, name its certificate: basalt login {server} --ca FILE",
            )
        if isinstance(cause, ssl.SSLError):
            return Unreachable(
                f"{server} does not speak TLS as asked ({cause.reason or cause}).", hint="Does its address begin with http://?"
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return Unreachable(f"{server} did not answer in time.", hint="Is it overloaded, or a firewall in between?")
    return Unreachable(
        f"Nobody answers at {server}: {str(error) or type(error).__name__}.",
        hint="Is Basalt running, and is this its address? `basalt context list` shows the addresses that are known.",
    )


def checked_address(server: str) -> str:
    """A server's address without a slash at its end. Raises Refused."""
    text = server.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.query and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise Refused(
            f"{server!r} is no address of a server.", hint="Write it as http://127.0.0.1:8000 or https://basalt.example"
        )
    return text


def _trust(ca: str) -> ssl.SSLContext:
    if not ca:
        return ssl.create_default_context()
    path = Path(ca).expanduser()
    try:
        return ssl.create_default_context(cafile=str(path))
    except FileNotFoundError:
        raise Refused(
            f"There is no file of certificates {path}.", hint="Name another with --ca, or set it in the context."
        ) from None
    except (ssl.SSLError, OSError) as error:
        raise Refused(f"{path} holds no certificates that can be read: {error}.") from error


def _params(query: Query | None) -> httpx.QueryParams:
    """Parameters without those that are None or empty; sequences several times, booleans as `true`."""
    params: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in (query or {}).items():
        if value is None or value == "" or value is False:
            continue
        values = [value] if isinstance(value, (str, int, float)) else value
        params.extend((name, "true" if each is True else str(each)) for each in values)
    return httpx.QueryParams(params)
