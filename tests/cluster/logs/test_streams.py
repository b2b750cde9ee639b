"""Logs on disk are read the same from wherever one begins, compressed or not."""

import os

from hypothesis import given
from hypothesis import strategies as st

from cluster.embedded.processes.supervisor.output import LogWriter
from cluster.logs import retention
from cluster.logs.records import Record, instant, parse, seconds
from cluster.logs.store import LogStore
from cluster.logs.streams import START, FileStream, SimulatedStream


def write(folder, lines, most=1 << 20):
    writer = LogWriter(str(folder), [], most)
    for line in lines:
        writer.write("stdout", line + b"\n")
    writer.close()
    return FileStream(folder)


def everything(stream, step):
    found, position = [], START
    while True:
        records, position = stream.read(position, step)
        if not records:
            return found
        found += records


@given(
    st.lists(st.binary(max_size=300).map(lambda text: text.replace(b"\n", b"")), max_size=400),
    st.integers(17_000, 200_000),
    st.integers(0, 50),
    st.booleans(),
)
def test_pieces_tails_and_compression_agree(tmp_path_factory, lines, step, tail, packed):
    folder = tmp_path_factory.mktemp("pod") / "main" / "0"
    stream = write(folder, lines, most=700_000)
    if packed:
        retention._compress(folder, whole=True)
    found = everything(stream, step)
    assert [record.text for record in found] == lines
    last, end = stream.tail(tail)
    assert last == found[len(found) - min(tail, len(found)) :]
    assert stream.read(end, step)[0] == []


def test_a_reader_goes_on_while_files_are_compressed_behind_it(tmp_path):
    lines = [b"%06d " % number + b"x" * 90 for number in range(20_000)]
    stream = write(tmp_path, lines, most=4 << 20)
    records, position = stream.read(START, 500_000)
    retention._compress(tmp_path, whole=True)
    assert [record.text for record in records] + [r.text for r in _rest(stream, position)] == lines


def _rest(stream, position):
    found = []
    while True:
        records, position = stream.read(position, 300_000)
        if not records:
            return found
        found += records


def test_a_torn_record_is_skipped_and_an_unfinished_one_is_waited_for(tmp_path):
    stream = write(tmp_path, [b"one"])
    path = next(tmp_path.glob("*.log"))
    with path.open("ab") as file:
        file.write(b"2026-01-01T00:00:00.00000")
    records, position = stream.read(START, 1 << 20)
    assert [record.text for record in records] == [b"one"]
    with path.open("ab") as file:
        file.write(b"0000Z o F two\n")
    assert [record.text for record in stream.read(position, 1 << 20)[0]] == [b"two"]


def test_escapes_controls_and_what_is_no_text_are_shown_as_text():
    def shown(text):
        return Record("", "o", True, text).shown()

    assert shown(b"\x1b[31mred\x1b[0m \x1b]0;title\x07end") == "red end"
    assert shown(b"10%\r50%\r100%") == "100%"
    assert shown(b"windows\r") == "windows"
    assert shown(b"\xff\x00\x08") == "\ufffd\ufffd\ufffd"
    assert shown("\u202eevil".encode()) == "\ufffdevil"
    assert shown("中文\ttab".encode()) == "中文\ttab"


@given(st.binary(max_size=200))
def test_any_line_can_be_parsed_or_is_none(line):
    found = parse(line)
    assert found is None or isinstance(found, Record)


def test_instants_there_and_back():
    assert instant(1_700_000_000.25) == "2023-11-14T22:13:20.250000000Z"
    assert seconds("2023-11-14T22:13:20.250000000Z") == 1_700_000_000.25


def test_a_simulated_container_says_that_it_is():
    stream = SimulatedStream("main", lambda: (1000.0, 1011.0, 2), lambda: 2000.0)
    texts = [record.text.decode() for record in stream.tail(100)[0]]
    assert texts == [
        "main: started (simulated: no program runs)",
        "main: step 1 (simulated)",
        "main: step 2 (simulated)",
        "main: ended (simulated), exit code 2",
    ]
    assert [record.at[14:19] for record in stream.tail(1)[0]] == ["16:51"]


def pod_log(store, uid, size, ended_at=None):
    write(store.folder(uid) / "main" / "0", [os.urandom(size // 2).hex().encode()])
    if ended_at is not None:
        store.ended(uid)
        os.utime(store.folder(uid) / "ended", (ended_at, ended_at))


def test_logs_go_by_age_then_by_size_oldest_first_and_never_while_a_pod_prints(tmp_path):
    store = LogStore(tmp_path)
    for uid, ended_at in (("old", 100.0), ("first", 900.0), ("second", 950.0), ("third", 990.0), ("running", None)):
        pod_log(store, uid, 10_000, ended_at)
    assert retention.sweep(store, retention.Bounds(500.0, 1 << 30), now=1000.0).removed == 1
    assert not store.has("old")
    room = sum(f.stat().st_size for f in tmp_path.rglob("*.log*")) - 1
    assert retention.sweep(store, retention.Bounds(500.0, room), now=1000.0).removed == 1
    assert [uid for uid in ("first", "second", "third", "running") if store.has(uid)] == ["second", "third", "running"]
    assert retention.sweep(store, retention.Bounds(500.0, 0), now=1000.0).removed == 2
    assert store.has("running")


def test_what_has_ended_is_compressed_and_still_read(tmp_path):
    store = LogStore(tmp_path)
    write(store.folder("u") / "main" / "0", [b"same line"] * 5000)
    store.ended("u")
    assert retention.sweep(store, retention.Bounds(1e12, 1 << 30), now=1.0).compressed == 3
    assert {file.suffix for file in (store.folder("u") / "main" / "0").iterdir()} == {".gz"}
    assert len(everything(store.stream("u", "main", 0), 1 << 20)) == 5000
