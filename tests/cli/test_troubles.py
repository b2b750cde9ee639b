"""Servers that are down, slow, strange or not to be trusted: each is said in words, with what to do, and never as a traceback."""

import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from basalt import BasaltError, Client, Conflict, Forbidden, NotFound, Refused, ServerFailed, SignedOut, Unreachable, Untrusted
from basalt.client import transport
from tests.cli.program import basalt
from tests.e2e.server import free_port


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(transport, "PAUSES", (0.0, 0.0))


def answering(answer: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client("http://basalt.example", "t", transport=httpx.MockTransport(answer))


def problem(status: int, detail: str = "no", **more) -> httpx.Response:
    return httpx.Response(status, json={"status": status, "detail": detail, **more})


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, Refused), (401, SignedOut), (403, Forbidden), (404, NotFound), (409, Conflict), (413, Refused), (422, Refused),
     (429, ServerFailed), (500, ServerFailed), (503, ServerFailed)],
)  # fmt: skip
def test_each_status_is_an_error_of_its_own(status: int, kind: type[BasaltError]):
    with pytest.raises(kind) as raised:
        answering(lambda _: problem(status)).queues.delete("q")
    assert type(raised.value) is kind
    assert "no" in raised.value.message


def test_faults_carry_their_places():
    errors = [
        {"pointer": "/spec/x", "detail": "wrong", "code": "c", "line": 3, "document": 0},
        {"pointer": "", "detail": "all wrong"},
    ]
    with pytest.raises(Refused) as raised:
        answering(lambda _: problem(422, errors=errors)).jobs.create({})
    assert [str(fault) for fault in raised.value.faults] == ["line 3, /spec/x: wrong", "all wrong"]


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'"x"', b""])
def test_an_answer_that_is_not_basalts_is_told(body: bytes):
    with pytest.raises(ServerFailed, match="not Basalt's"):
        answering(lambda _: httpx.Response(502, content=body)).about()


def test_a_read_is_tried_again_and_a_create_too_under_one_key():
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return problem(503) if len(asked) % 3 else httpx.Response(200, json={"name": "x"})

    client = answering(answer)
    assert client.queues.get("x") == {"name": "x"}
    assert client.jobs.create({"kind": "Job"}) == {"name": "x"}
    assert len(asked) == 6
    assert len({request.headers["Idempotency-Key"] for request in asked[3:]}) == 1


def test_other_changes_are_sent_once():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return problem(503)

    with pytest.raises(ServerFailed):
        answering(answer).jobs.act("suspend", "x", "default")
    assert len(asked) == 1
    assert asked[0].url.path == "/api/v1/jobs/default/x/actions/suspend"


def test_lists_are_read_page_by_page():
    pages = {None: ([1, 2], "c1"), "c1": ([3], None)}

    def answer(request: httpx.Request) -> httpx.Response:
        rows, following = pages[request.url.params.get("cursor")]
        url = f"http://elsewhere/api/v1/jobs?limit=500&cursor={following}" if following else None
        return httpx.Response(200, json={"results": rows, "next": url})

    client = answering(answer)
    assert list(client.jobs.list()) == [1, 2, 3]
    assert list(client.jobs.list(limit=2)) == [1, 2]


def test_names_go_into_addresses_as_they_are():
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path)
        return problem(404)

    with pytest.raises(NotFound):
        answering(answer).jobs.get("a/../b", "n?x")
    assert asked == [b"/api/v1/jobs/n%3Fx/a%2F..%2Fb"]


# --- on the command line ---


@pytest.fixture
def known(monkeypatch) -> Callable[[str], None]:
    def use(server: str) -> None:
        monkeypatch.setenv("BASALT_SERVER", server)
        monkeypatch.setenv("BASALT_TOKEN", "t")

    return use


@pytest.mark.parametrize(
    "args",
    [("job", "list"), ("submit", "j.yaml"), ("watch",), ("logs", "x", "-f"), ("explain", "x"), ("wait", "x"), ("top", "gpus")],
)
def test_a_server_that_is_down(known, args):
    address = f"http://127.0.0.1:{free_port()}"
    known(address)
    Path("j.yaml").write_text("kind: Job\nmetadata: {name: x}\n")
    said = basalt(*args, code=8)
    assert said.out == ""
    assert said.err.startswith(f"Error: Nobody answers at {address}: ")
    assert "Is Basalt running" in said.err


class Handler(http.server.BaseHTTPRequestHandler):
    """A server that is no Basalt."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def strange() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_server_that_is_no_basalt(known, strange):
    known(strange)
    assert "something that is not Basalt's" in basalt("job", "list", code=8).err
    assert "has no live channel" in basalt("top", "gpus", code=8).err


def test_a_server_that_speaks_no_tls(known, strange):
    known(strange.replace("http:", "https:"))
    said = basalt("job", "list", code=8)
    assert "does not speak TLS" in said.err
    assert "http://" in said.err


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A key, and a certificate for another name signed by itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(7)
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    (tmp_path / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    return tmp_path / "key.pem", tmp_path / "cert.pem"


@pytest.fixture
def secured(certificate) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_certificate_of_an_unknown_authority_or_for_another_name(known, secured, certificate, monkeypatch):
    for address in (f"https://localhost:{secured}", f"https://127.0.0.1:{secured}"):
        known(address)
        for args in (("job", "list"), ("top", "gpus")):
            said = basalt(*args, code=8)
            assert f"The certificate of {address} does not match: " in said.err
            assert "--ca FILE" in said.err
    monkeypatch.setenv("BASALT_CA", str(certificate[1]))
    assert "IP address mismatch" in basalt("job", "list", code=8).err
    known(f"https://localhost:{secured}")
    assert "not Basalt's" in basalt("job", "list", code=8).err  # trusted now, and still no Basalt


def test_a_file_of_certificates_that_is_none(monkeypatch):
    Path("cert.pem").write_text("nonsense")
    for ca, why in (("cert.pem", "holds no certificates"), ("nowhere.pem", "There is no file of certificates")):
        with pytest.raises(Refused, match=why):
            Client("https://localhost", "t", ca=ca)
    with pytest.raises((Unreachable, Untrusted)):
        Client("https://127.0.0.1:1", "t").queues.delete("q")


def test_what_went_wrong_inside_is_not_hidden():
    """A fault of ours is no error of the user's: it stays a traceback for whoever mends it."""
    with pytest.raises(ZeroDivisionError):
        answering(lambda _: 1 / 0).about()
