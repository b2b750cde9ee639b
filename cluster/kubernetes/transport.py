"""Requests to an API server: addresses, credentials, and refusals turned into the port's own errors.

The official client reads the configuration (kubeconfig, service account, or a URL and a token) and keeps the connections;
bodies are raw JSON, and no object is turned into a model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import urllib3
from kubernetes import client, config

from cluster.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
)
from cluster.kinds import Kind
from cluster.kubernetes.pace import MOST_PAUSES, Pace, asked_pause
from cluster.pointers import from_field_path
from cluster.port import Obj

CONNECTIONS = 128
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 60.0

_BY_REASON: dict[str, type[ApiError]] = {
    error.reason: error
    for error in (BadRequest, Forbidden, NotFound, AlreadyExists, Conflict, Expired, Invalid, TooManyRequests, Unavailable)
}
_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest, 401: Forbidden, 403: Forbidden, 404: NotFound, 409: Conflict, 410: Expired, 422: Invalid,
    429: TooManyRequests, 503: Unavailable, 504: Unavailable,
}  # fmt: skip


class Transport:
    """One API server, safe from any thread."""

    def __init__(self, configuration: Any) -> None:
        self.guard: Callable[[], None] = lambda: None
        """Called before each write, also each of a batch; raises ApiError when it may not be made."""
        self.heard: Callable[[str, int], None] = lambda method, status: None
        """Told of each request and its answer (0: none came)."""
        self.answer_seconds = ANSWER_SECONDS
        self.pace = Pace()
        configuration.connection_pool_maxsize = CONNECTIONS
        configuration.retries = urllib3.Retry(total=0)
        self._configuration = configuration
        self._pool = client.ApiClient(configuration).rest_client.pool_manager

    @classmethod
    def to(cls, url: str = "", token: str = "", authority: str = "") -> Transport:
        """The server at a URL, by a token; without a URL the one of the kubeconfig, or of the cluster this runs in.

        `authority` is a file of certificates by which an https server is known, in place of the system's.
        Raises Unavailable when there is neither.
        """
        if url:
            configuration = client.Configuration()
            configuration.host = url.rstrip("/")
            configuration.ssl_ca_cert = authority or None
            configuration.api_key = {"authorization": f"Bearer {token}"} if token else {}
            return cls(configuration)
        configuration = client.Configuration()
        try:
            config.load_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
        except config.ConfigException as error:
            said = f"no kubeconfig, and no service account of a pod ({error}): set KUBECONFIG or BASALT_CLUSTER_URL"
            raise Unavailable(f"no cluster is configured: {said}") from None
        return cls(configuration)

    def call(self, method: str, path: str, query: dict[str, str] | None = None, body: Any = None, media: str = "") -> Obj:
        """One request and its object. Raises ApiError."""
        for paused in range(MOST_PAUSES):
            if method != "GET":
                self.pace.wait()
                self.guard()
            response = self._request(method, path, query, body, media, stream=False, seconds=self.answer_seconds)
            self.heard(method, response.status)
            pause = asked_pause(response.status, response.headers.get("Retry-After"), path)
            if pause is None or paused == MOST_PAUSES - 1:
                break
            time.sleep(pause)
        if response.status >= 300:
            raise refusal(response.status, response.data)
        found: Obj = orjson.loads(response.data)
        return found

    def lines(self, path: str, query: dict[str, str], idle: float) -> tuple[Iterator[bytes], Any]:
        """A stream of lines, and what closes it from another thread. Raises ApiError before the first line."""
        response = self._request("GET", path, query, None, "", stream=True, seconds=idle)
        if response.status >= 300:
            raise refusal(response.status, response.data)
        return _lines(response), response

    def _request(self, method: str, path: str, query: Any, body: Any, media: str, *, stream: bool, seconds: float) -> Any:
        headers = {"Accept": "application/json", "User-Agent": "basalt"}
        for setting in self._configuration.auth_settings().values():
            if setting["value"]:
                headers[setting["key"]] = setting["value"]
        if body is not None:
            headers["Content-Type"] = media or "application/json"
        url = self._configuration.host + path + (f"?{urlencode(query)}" if query else "")
        try:
            return self._pool.request(
                method,
                url,
                body=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=seconds),
                preload_content=not stream,
                retries=urllib3.Retry(total=0) if method != "GET" else urllib3.Retry(total=1),
            )
        except urllib3.exceptions.HTTPError as error:
            self.heard(method, 0)
            raise Unavailable(f"the cluster does not answer: {error}") from None
        except TypeError as error:  # from orjson
            raise BadRequest(f"the object cannot be written as JSON: {error}") from None


def path_of(kind: Kind, namespace: str = "", name: str = "", part: str = "") -> str:
    """The address of a kind, an object, or a part of one."""
    steps = ["apis", kind.group, kind.version] if kind.group else ["api", kind.version]
    if namespace and kind.namespaced:
        steps += ["namespaces", namespace]
    return "/" + "/".join(quote(step, safe="") for step in (*steps, kind.plural, *filter(None, (name, part))))


def refusal(code: int, content: bytes) -> ApiError:
    """What a Status says, as one of the port's errors."""
    try:
        said = orjson.loads(content)
    except ValueError:
        said = {}
    if not isinstance(said, dict):
        said = {}
    error = _BY_REASON.get(str(said.get("reason"))) or _BY_STATUS.get(code) or ApiError
    causes = (said.get("details") or {}).get("causes") or ()
    fields = [FieldError(from_field_path(str(c.get("field") or "")), str(c.get("message") or "")) for c in causes]
    return error(str(said.get("message") or f"the cluster answered {code}"), fields)


def _lines(response: Any) -> Iterator[bytes]:
    rest = b""
    try:
        for chunk in response.stream(2**16, decode_content=True):
            *whole, rest = (rest + chunk).split(b"\n")
            yield from filter(None, whole)
    except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
        return  # the connection broke, or was closed by whoever reads
    finally:
        response.release_conn()
