"""What a container prints becomes records, in files that take turns."""

from hypothesis import given
from hypothesis import strategies as st

from cluster.embedded.processes.supervisor.output import LONGEST_PIECE, LogWriter
from cluster.logs.streams import FileStream


def records(folder):
    found, _ = FileStream(folder).read((0, 0), 1 << 30)
    return found


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_what_is_read_back_is_what_was_written(tmp_path_factory, pieces):
    folder = tmp_path_factory.mktemp("log")
    writer = LogWriter(str(folder), [], 1 << 20)
    for piece in pieces:
        writer.write("stdout", piece)
    writer.close()
    text = b"".join(pieces)
    expected = text.split(b"\n") if text else []
    if expected and not expected[-1]:
        expected.pop()
    assert [record.text for record in records(folder)] == expected


def test_a_huge_line_comes_in_pieces_and_binary_is_kept_as_it_is(tmp_path):
    line = bytes(range(256)).replace(b"\n", b"") * 200
    writer = LogWriter(str(tmp_path), [], 1 << 20)
    writer.write("stderr", line + b"\nnext\n")
    writer.close()
    found = records(tmp_path)
    assert [record.full for record in found] == [False] * (len(line) // LONGEST_PIECE) + [True, True]
    assert b"".join(record.text for record in found[:-1]) == line
    assert {record.stream for record in found} == {"e"}


def test_a_long_log_keeps_its_end_within_its_bound(tmp_path):
    writer = LogWriter(str(tmp_path), [], 1 << 20)
    for number in range(200_000):
        writer.write("stdout", b"line %d\n" % number)
    writer.close()
    kept = records(tmp_path)
    assert kept[-1].text == b"line 199999"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= (1 << 20) + 65_536
    numbers = [int(record.text.split()[1]) for record in kept]
    assert numbers == list(range(numbers[0], 200_000)), "nothing is lost in between"
    assert FileStream(tmp_path).is_cut()


def test_streams_do_not_mix_within_a_line(tmp_path):
    writer = LogWriter(str(tmp_path), [], 1 << 20)
    writer.write("stdout", b"half ")
    writer.write("stderr", b"whole\n")
    writer.write("stdout", b"line\n")
    writer.close()
    assert [(record.stream, record.text) for record in records(tmp_path)] == [("e", b"whole"), ("o", b"half line")]
