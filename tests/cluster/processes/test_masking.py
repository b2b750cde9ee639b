"""No secret gets through, in whatever pieces it comes; and nothing else is lost or held for ever."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cluster.logs.masking import MASK, Mask, patterns

SECRETS = [b"hunter2-hunter2", b"hunter2", b"line one\nline two", b"aaaaaa"]


def masked(pieces, secrets=SECRETS):
    mask = Mask(patterns(secrets))
    return b"".join([*(mask.feed(piece) for piece in pieces), mask.end()])


def cut(data, places):
    edges = [0, *sorted({place % (len(data) + 1) for place in places}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(
    st.lists(st.sampled_from([*SECRETS, b"hunter", b"a", b"plain text ", b"\n", b"line one"]), max_size=12),
    st.lists(st.integers(0, 400)),
)
def test_how_a_text_is_cut_changes_nothing_and_no_secret_is_left(words, places):
    text = b"".join(words)
    found = masked(cut(text, places))
    assert found == masked([text])
    for secret in SECRETS:
        assert secret not in found.replace(MASK, b"|")


def test_the_longest_secret_is_taken_as_one():
    assert masked([b"x hunter2-hunter2 y"]) == b"x ****** y"


def test_lines_and_the_base64_of_a_secret_are_masked_too():
    assert masked([b"line two / bGluZSBvbmUKbGluZSB0d28= /"]) == b"****** / ******= /"


def test_short_values_would_mask_everything_and_are_left():
    assert patterns([b"1", b"true", b"12345"]) == []


def test_without_secrets_nothing_is_held_back():
    assert Mask([]).feed(b"half a li") == b"half a li"
