"""Logs that a kubelet keeps: lines as records, what comes after what was read, masks, and what can go wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import ApiError, BadRequest, Forbidden, NotFound
from cluster.logs import remote
from cluster.logs.masking import Mask, patterns
from cluster.logs.records import Record
from cluster.logs.remote import Records, RemoteStream, Troubles, secret_names
from cluster.logs.streams import START

T = "2030-01-01T00:00:{:02d}.{:09d}Z"


def line(second: int, text: str, nano: int = 0) -> bytes:
    return f"{T.format(second, nano)} {text}\n".encode()


class Answer:
    """An answer in pieces, which come when they are let go."""

    def __init__(self, *pieces: bytes, ends: bool = True) -> None:
        self.pieces, self.ends = list(pieces), ends
        self.closed = threading.Event()
        self.more = threading.Event()

    def chunks(self) -> Iterator[bytes]:
        while True:
            while self.pieces:
                yield self.pieces.pop(0)
            if self.ends or self.closed.is_set():
                return
            self.more.wait(0.01)

    def close(self) -> None:
        self.closed.set()


class Server:
    """Answers to requests in turn; errors are raised."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), []

    def __call__(self, parameters: dict[str, str]) -> Any:
        self.asked.append(parameters)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def texts(records: list[Record]) -> list[str]:
    return [record.text.decode() for record in records]


def until(stream: RemoteStream, count: int) -> list[Record]:
    """Records until so many have come."""
    found: list[Record] = []
    end = time.monotonic() + 5
    while len(found) < count and time.monotonic() < end:
        found += stream.read((1, 0), 10_000)[0]
        time.sleep(0.005)
    return found


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LOOK_SECONDS", 0.01)


def test_lines_become_records_in_utc() -> None:
    data = b"2030-01-01T00:00:01.5Z one\n2030-01-01T02:00:02.000000007+02:00 two\n2030-01-01T00:00:03Z \nno instant\n"
    found = Records().feed(data)
    assert [(r.at, r.text.decode(), r.full, r.stream) for r in found] == [
        (T.format(1, 500_000_000), "one", True, "o"),
        (T.format(2, 7), "two", True, "o"),
        (T.format(3, 0), "", True, "o"),
        (T.format(3, 0), "no instant", True, "o"),
    ]


@given(st.lists(st.text("ab\r é", max_size=6), max_size=6), st.data())
def test_however_bytes_come_the_records_are_the_same(lines: list[str], data: st.DataObject) -> None:
    whole = b"".join(line(number, text) for number, text in enumerate(lines))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    records = Records()
    found = [r for start, end in zip([0, *cuts], [*cuts, len(whole)]) for r in records.feed(whole[start:end])] + records.end()
    assert texts(found) == lines


def test_a_long_line_comes_in_pieces_and_a_torn_last_one_whole() -> None:
    records = Records()
    data = line(1, "x" * 100_000) + line(2, "end")[:-1]
    found = [r for start in range(0, len(data), 10_000) for r in records.feed(data[start : start + 10_000])] + records.end()
    assert max(len(record.text) for record in found) <= remote.PIECE + 10_000
    assert "".join(texts([r for r in found if r.at == T.format(1, 0)])) == "x" * 100_000
    assert [record.full for record in found].count(True) == 2
    assert texts(found)[-1] == "end"


def test_secrets_are_masked_also_in_pieces() -> None:
    records = Records(Mask(patterns([b"hunter2hunter2", b"first line\nsecond line"])))
    found = records.feed(line(1, "key hunter2hu")[:-1]) + records.feed(b"nter2 and second line\n")
    assert texts(found) == ["key ****** and ******"]


def test_the_secrets_of_a_pod_are_those_that_its_containers_are_given() -> None:
    spec = {
        "initContainers": [{"envFrom": [{"secretRef": {"name": "a"}}, {"configMapRef": {"name": "x"}}]}],
        "containers": [
            {"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "b", "key": "k"}}}, {"name": "L", "value": "1"}]}
        ],
        "volumes": [{"secret": {"secretName": "c"}}, {"projected": {"sources": [{"secret": {"name": "d"}}]}}, {"emptyDir": {}}],
    }
    assert secret_names({"spec": spec}) == {"a", "b", "c", "d"}
    assert secret_names({}) == set()


def test_read_once_it_is_read_to_its_end_and_no_further() -> None:
    server = Server(Answer(line(1, "a"), line(2, "b")))
    stream = RemoteStream(server, lambda: False)
    assert texts(stream.read(START, 10)[0]) == ["a"]
    assert texts(stream.read((1, 1), 10)[0]) == ["b"]
    assert stream.read((1, 2), 10)[0] == []
    assert server.asked == [{"timestamps": "true"}]


def test_what_comes_follows_what_was_read_and_nothing_twice() -> None:
    followed = Answer(line(1, "a"), line(2, "b", 5), line(2, "b again", 5), line(2, "c", 5), line(3, "d"), ends=False)
    server = Server(Answer(line(1, "a"), line(2, "b", 5), line(2, "b again", 5)), followed)
    stream = RemoteStream(server, lambda: False)
    assert texts(stream.tail(100)[0]) == ["a", "b", "b again"]
    assert texts(until(stream, 2)) == ["c", "d"]
    assert server.asked[1] == {"timestamps": "true", "sinceTime": "2030-01-01T00:00:02Z", "follow": "true"}
    followed.pieces.append(line(3, "e"))
    assert texts(until(stream, 1)) == ["e"]
    stream.close()
    assert followed.closed.is_set()


def test_a_connection_that_breaks_is_made_again() -> None:
    server = Server(Answer(line(1, "a")), Answer(line(2, "b")), Answer(line(2, "b"), line(3, "c"), ends=False))
    stream = RemoteStream(server, lambda: False)
    assert texts(stream.read(START, 100)[0] + stream.read((1, 1), 100)[0]) == ["a"]
    assert texts(until(stream, 2)) == ["b", "c"]
    assert server.asked[2]["sinceTime"] == "2030-01-01T00:00:02Z"
    assert not stream.is_over()
    stream.close()


def test_one_that_has_not_begun_is_asked_again_without_a_word() -> None:
    early = BadRequest('container "main" in pod "p" is waiting to start: ContainerCreating')
    stream = RemoteStream(Server(early, early, Answer(line(1, "a"), ends=False)), lambda: False)
    assert stream.read(START, 100)[0] == []
    assert texts(until(stream, 1)) == ["a"]
    stream.close()


def test_it_is_over_when_the_container_ended_and_all_was_read() -> None:
    has_ended = False
    last = Answer(line(2, "b"))
    stream = RemoteStream(Server(Answer(line(1, "a")), last), lambda: has_ended)
    stream.read(START, 100)
    stream.read((1, 1), 100)
    has_ended = True
    assert not stream.is_over()  # what was printed since is not read yet
    assert texts(until(stream, 1)) == ["b"]
    end = time.monotonic() + 5
    while not stream.is_over() and time.monotonic() < end:
        time.sleep(0.005)
    assert stream.is_over()


def test_a_kubelet_that_does_not_end_its_answer_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "LATE_SECONDS", 0.02)
    stream = RemoteStream(Server(Answer(), Answer(ends=False)), lambda: True)
    stream.read(START, 100)
    stream.read((1, 0), 100)
    assert not stream.is_over()
    time.sleep(0.05)
    assert stream.is_over()
    stream.close()


def test_a_pod_that_is_gone_is_over() -> None:
    stream = RemoteStream(Server(NotFound("no pod")), lambda: True)
    assert stream.read(START, 100)[0] == []
    assert stream.is_over()


def test_what_keeps_it_from_being_read_is_said_once_in_its_place() -> None:
    trouble = ApiError("dial tcp: no such host")
    stream = RemoteStream(Server(trouble, *[trouble] * 50), lambda: False)
    first = stream.read(START, 100)[0]
    assert [(r.stream, r.text.decode()) for r in first] == [("e", "The log cannot be read now: dial tcp: no such host")]
    assert stream.read((1, 1), 100)[0] == []
    for _ in range(5):
        assert stream.read((1, 1), 100)[0] == []
        time.sleep(0.02)
    stream.close()


def away(pod: str, cause: str = "dial tcp 10.0.0.1:10250: connect: connection refused") -> ApiError:
    return ApiError(f'Get "https://10.0.0.1:10250/containerLogs/default/{pod}/main?timestamps=true": {cause}')


def test_a_kubelet_that_is_away_is_told_of_once_whatever_pods_it_has() -> None:
    troubles, said = Troubles(), []
    for pod, node in (("a-0", "n1"), ("a-1", "n1"), ("a-2", "n2")):
        stream = RemoteStream(Server(away(pod)), lambda: False, node=node, troubles=troubles)
        said += [record.text.decode() for record in stream.tail(10)[0]]
        stream.close()
    cause = "can be read now: dial tcp 10.0.0.1:10250: connect: connection refused"
    assert said == [f"No log on node n1 {cause}", f"No log on node n2 {cause}"]


def test_what_is_wrong_otherwise_is_told_once_for_all_pods() -> None:
    troubles = Troubles()
    said = [troubles.line("n1", Forbidden(f'pods "a-{index}" is forbidden')) for index in range(3)]
    assert said == ['The log cannot be read now: pods "a-0" is forbidden', "", ""]
    assert troubles.line("n1", away("a-0", "context deadline exceeded")), "another cause is news"


def test_a_quiet_reader_hears_of_troubles_and_gets_no_lines() -> None:
    troubles = Troubles(quiet=True)
    stream = RemoteStream(Server(away("a-0")), lambda: False, node="n1", troubles=troubles)
    assert stream.tail(10)[0] == []
    assert troubles.last is not None
    stream.close()


def test_of_the_attempt_before_nothing_is_followed() -> None:
    server = Server(Answer(line(1, "a")))
    stream = RemoteStream(server, lambda: False, previous=True)
    assert texts(stream.tail(5)[0]) == ["a"]
    assert stream.read((1, 1), 100)[0] == []
    assert stream.is_over()
    assert server.asked == [{"timestamps": "true", "previous": "true", "tailLines": "5"}]


def test_no_more_than_so_many_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_followed", threading.Semaphore(1))
    one, other = (RemoteStream(Server(Answer(), Answer(ends=False)), lambda: False) for _ in range(2))
    for stream in (one, other):
        stream.read(START, 100)
    assert one.read((1, 0), 100)[0] == []
    assert "followed already" in texts(until(other, 1))[0]
    one.close()
    other.close()


def test_a_reader_that_stands_still_holds_a_kubelet_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "HELD_BYTES", 1000)
    many = Answer(*[line(1, "x" * 200, number) for number in range(100)], ends=False)
    stream = RemoteStream(Server(Answer(), many), lambda: False)
    stream.read(START, 100)
    first = stream.read((1, 0), 100)[0]
    time.sleep(0.1)
    assert len(many.pieces) > 85
    assert len(first + until(stream, 100 - len(first))) == 100
    stream.close()
