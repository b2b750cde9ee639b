"""Requests to an API server, one at a time: addresses, credentials, and whatever a server asks for before it answers.

The official client reads the configuration (kubeconfig, service account, or a URL and a token) and keeps the connections;
bodies are raw JSON, and no object is turned into a model.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import urllib3
import yaml
from kubernetes import client, config

from cluster.errors import ApiError, BadRequest, Unanswered, Unavailable
from cluster.kinds import Kind
from cluster.kubernetes.answers import refusal, taken
from cluster.kubernetes.pace import MOST_PAUSES, Pace, asked_pause
from cluster.port import Obj
from cluster.said import said

CONNECTIONS = 128
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0
_RENEWAL_SECONDS, _HEADS_SECONDS = 5.0, 1.0
_UNSENT = (urllib3.exceptions.ConnectTimeoutError, urllib3.exceptions.NewConnectionError, urllib3.exceptions.SSLError)
_CHUNK = 2**16


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `query` is not encoded yet, `body` is what becomes JSON, `media` its type where that says more."""

    method: str
    path: str
    query: dict[str, str] | None = None
    body: Any = None
    media: str = ""

    @property
    def writes(self) -> bool:
        """Whether it may change anything."""
        return self.method != "GET"


class Transport:
    """One API server, safe from any thread."""

    def __init__(self, configuration: Any, renew: Callable[[], Any] | None = None) -> None:
        self.guard: Callable[[], None] = lambda: None
        """Called before each write, also each of a batch; raises ApiError when it may not be made."""
        self.heard: Callable[[str, int], None] = lambda method, status: None
        """Told of each request and its answer (0: none came)."""
        self.answer_seconds = ANSWER_SECONDS
        self.pace = Pace()
        self.manager = ""
        """The field manager of writes that name none."""
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.retries = urllib3.Retry(total=0)
        self.configuration = configuration
        self._heads: dict[str, str] = {}
        self._heads_until = float("-inf")
        self._renew, self._renewed_at, self._lock = renew, float("-inf"), threading.Lock()
        self._pool = client.ApiClient(configuration).rest_client.pool_manager

    @classmethod
    def to(cls, url: str = "", token: str = "", authority: str = "") -> Transport:
        """The server at a URL, by a token; without a URL the one of the kubeconfig, or of the cluster this runs in.

        `authority` is a file of certificates by which an https server is known, in place of the system's.
        Raises Unavailable when there is neither.
        """
        if not url:
            return cls(_configured(), _configured)
        configuration = client.Configuration()
        configuration.host = url.rstrip("/")
        configuration.ssl_ca_cert = authority or None
        configuration.api_key = {"authorization": f"Bearer {token}"} if token else {}
        return cls(configuration)

    def call(self, request: Request) -> Obj:
        """One request and its object. Raises ApiError; Unanswered when it may have been done all the same."""
        for tried in range(MOST_PAUSES):
            if request.writes:
                self.pace.wait()
                self.guard()
            response = self._send(request, stream=False, seconds=self.answer_seconds)
            self.heard(request.method, response.status)
            pause = self.pause(response.status, response.headers.get("Retry-After"), response.data, tried)
            if pause is None:
                break
            time.sleep(pause)
        return taken(response.status, response.data)

    def lines(self, path: str, query: dict[str, str], idle: float) -> tuple[Iterator[bytes], Any]:
        """A stream of lines, and what closes it from another thread. Raises ApiError before the first line."""
        response = self.stream(path, query, idle)
        return _lines(response), response

    def stream(self, path: str, query: dict[str, str], idle: float) -> Any:
        """An answer that is read as it comes, at most `idle` seconds without a byte. Raises ApiError."""
        response = self._send(Request("GET", path, query), stream=True, seconds=idle)
        if response.status >= 300:
            told = response.read(2**16)
            response.release_conn()
            self.pause(response.status, None, b"", 0)  # credentials that have run out are read anew for the next try
            raise refusal(response.status, told)
        return response

    # -- what both flavours of the client share ----------------------------------------------------------------------------

    def encoded(self, request: Request) -> tuple[str, dict[str, str], bytes | None]:
        """Address, headers and body of a request. Raises BadRequest for what is no JSON."""
        headers = self._headers()
        query = request.query or {}
        if self.manager and request.method in ("POST", "PUT", "PATCH"):
            query = {"fieldManager": self.manager, **query}
        url = self.configuration.host + request.path + (f"?{urlencode(query)}" if query else "")
        if request.body is None:
            return url, headers, None
        headers["Content-Type"] = request.media or "application/json"
        try:
            return url, headers, orjson.dumps(request.body)
        except TypeError as error:
            raise BadRequest(said("the object cannot be written as JSON: %(error)s", error=error)) from None

    def _headers(self) -> dict[str, str]:
        """What every request says. Credentials are asked for once a second: that may mean to look at files."""
        if time.monotonic() >= self._heads_until:
            heads = {"Accept": "application/json", "User-Agent": "basalt"}
            for setting in self.configuration.auth_settings().values():
                if setting["value"]:
                    heads[setting["key"]] = setting["value"].strip()
            self._heads, self._heads_until = heads, time.monotonic() + _HEADS_SECONDS
        return dict(self._heads)

    def pause(self, status: int, retry_after: str | None, told: bytes, tried: int) -> float | None:
        """Seconds after which a request that was not carried out is made again; None: its answer stands."""
        if tried >= MOST_PAUSES - 1:
            return None
        if status == 401:
            return 0.0 if self._renewed() else None
        return asked_pause(status, retry_after, told)

    def _renewed(self) -> bool:
        """Read the credentials anew, where they come from files or programs that may have others by now; whether they are new."""
        with self._lock:
            if self._renew is None or time.monotonic() < self._renewed_at + _RENEWAL_SECONDS:
                return False
            self._renewed_at = time.monotonic()
            before = self.configuration.auth_settings()
            try:
                fresh = self._renew()
            except ApiError:
                return False
            self.configuration.api_key = fresh.api_key
            self.configuration.refresh_api_key_hook = fresh.refresh_api_key_hook
            self._heads_until = float("-inf")
            return bool(self.configuration.auth_settings() != before)

    def _send(self, request: Request, *, stream: bool, seconds: float) -> Any:
        url, headers, data = self.encoded(request)
        try:
            return self._pool.request(
                request.method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds),
                preload_content=not stream,
                retries=urllib3.Retry(total=0 if request.writes else 1),
            )
        except urllib3.exceptions.HTTPError as error:
            self.heard(request.method, 0)
            cause = error.reason if isinstance(error, urllib3.exceptions.MaxRetryError) else error
            unclear = request.writes and not isinstance(cause, _UNSENT)
            raise (Unanswered if unclear else Unavailable)(f"the cluster does not answer: {error}") from None


def _configured() -> Any:
    """What the kubeconfig says, or the service account of the pod. Raises Unavailable."""
    configuration = client.Configuration()
    try:
        config.load_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        told = f"no kubeconfig, and no service account of a pod ({error}): set KUBECONFIG or BASALT_CLUSTER_URL"
        raise Unavailable(said("no cluster is configured: %(told)s", told=told)) from None
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        told = f"{config.KUBE_CONFIG_DEFAULT_LOCATION} is no kubeconfig: {' '.join(str(error).split())}"
        raise Unavailable(said("no cluster is configured: %(told)s", told=told)) from None
    return configuration


def path_of(kind: Kind, namespace: str = "", name: str = "", part: str = "") -> str:
    """The address of a kind, an object, or a part of one."""
    steps = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if namespace and kind.namespaced:
        steps += ["namespaces", namespace]
    return "/" + "/".join(quote(step, safe="") for step in (*steps, kind.plural, *filter(None, (name, part))))


def _lines(response: Any) -> Iterator[bytes]:
    """Whole lines as they come; what a broken connection cut off is dropped. A long line is put together once."""
    parts: list[bytes] = []
    try:
        for chunk in response.stream(_CHUNK, decode_content=True):
            if b"\n" not in chunk:
                parts.append(chunk)
                continue
            *whole, rest = (b"".join(parts) + chunk).split(b"\n")
            parts = [rest] if rest else []
            yield from filter(None, whole)
    except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
        return  # the connection broke, or was closed by whoever reads
    finally:
        response.release_conn()
