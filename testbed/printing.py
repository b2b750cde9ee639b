"""What a kubelet answers when an API server asks it for logs: over TLS, in chunks, followed until the container has ended."""

from __future__ import annotations

import ssl
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from cluster.objects import stamp
from portal.webhooks import certificates


class LogEndpoint:
    """`/containerLogs/<namespace>/<pod>/<container>` of every node that names this port."""

    def __init__(self, folder: Path) -> None:
        self._lines: dict[str, list[str]] = {}
        self._over: set[str] = set()
        self.asked: list[tuple[str, dict[str, str]]] = []
        authority = certificates.new_authority(datetime.now(UTC))
        pair = certificates.new_server(authority, ["127.0.0.1"], datetime.now(UTC))
        (folder / "kubelet.crt").write_bytes(pair.certificate)
        (folder / "kubelet.key").write_bytes(pair.key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.port = int(self._server.server_port)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def print(self, key: str, text: str, at: float | None = None) -> None:
        """A container, `namespace/pod/container`, prints a line; one of the attempt before has the key `…/previous`."""
        at = time.time() if at is None else at
        self._lines.setdefault(key, []).append(f"{stamp(at)[:-1]}.{int(at % 1 * 1e9):09d}Z {text}")

    def end(self, key: str) -> None:
        """It prints no more."""
        self._over.add(key)

    def stop(self) -> None:
        """End."""
        self._over |= set(self._lines)
        self._server.shutdown()
        self._server.server_close()

    def lines(self, key: str, query: dict[str, str]) -> list[str]:
        """What is there of it, as it was asked for."""
        found = [each for each in self._lines.get(key, ()) if each >= query.get("sinceTime", "")[:19]]
        found = found[-int(query["tailLines"]) :] if "tailLines" in query else found
        return found if query.get("timestamps") == "true" else [each.partition(" ")[2] for each in found]

    def count(self, key: str) -> int:
        """Lines that are there."""
        return len(self._lines.get(key, ()))

    def is_over(self, key: str) -> bool:
        """Whether it prints no more."""
        return key in self._over


def _handler(endpoint: LogEndpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            key = parts.path.removeprefix("/containerLogs/") + ("/previous" if query.get("previous") == "true" else "")
            endpoint.asked.append((key, query))
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Transfer-Encoding", "chunked")
            self.send_header("Connection", "close")
            self.end_headers()
            sent = endpoint.count(key)
            self._send(endpoint.lines(key, query))
            while query.get("follow") == "true" and not (endpoint.is_over(key) and sent == endpoint.count(key)):
                new = endpoint.lines(key, {"timestamps": query.get("timestamps", "")})[sent:]
                sent += len(new)
                self._send(new)
                time.sleep(0.02)
            self.wfile.write(b"0\r\n\r\n")

        def _send(self, lines: list[str]) -> None:
            if lines:
                data = "".join(f"{each}\n" for each in lines).encode()
                self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                self.wfile.flush()

        def log_message(self, *_: Any) -> None:
            """Who asked is in `asked`."""

    return Handler
