"""Arguments as Go's flag package reads them. The table is what Go 1.22 answers; what it would ignore is a fault here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.plugins.flags import Flag, hidden, parse

FLAGS = (Flag("port", 22), Flag("name", "worker"), Flag("on", False), Flag("key", "", is_secret=True))
DEFAULTS = {"port": 22, "name": "worker", "on": False, "key": ""}


@pytest.mark.parametrize(
    ("arguments", "changed"),
    [
        ([], {}),
        (["--port=5000"], {"port": 5000}),
        (["-port=5000"], {"port": 5000}),
        (["--port", "5000"], {"port": 5000}),
        (["--port=1", "--port=2"], {"port": 2}),
        (["--port=-7"], {"port": -7}),
        (["--port=+7"], {"port": 7}),
        (["--port=0x1F"], {"port": 31}),
        (["--port=0b101"], {"port": 5}),
        (["--port=0o17"], {"port": 15}),
        (["--port=017"], {"port": 15}),
        (["--port=1_000"], {"port": 1000}),
        (["--port=0_7"], {"port": 7}),
        (["--port=0x_f"], {"port": 15}),
        (["--port=9223372036854775807"], {"port": 2**63 - 1}),
        (["--name="], {"name": ""}),
        (["--name=a=b"], {"name": "a=b"}),
        (["--name", "--port"], {"name": "--port"}),
        (["--name", ""], {"name": ""}),
        (["--on"], {"on": True}),
        (["--on=true"], {"on": True}),
        (["--on=T"], {"on": True}),
        (["--on=1"], {"on": True}),
        (["--on", "--on=FALSE"], {}),
        (["--on=f", "--port=1"], {"port": 1}),
    ],
)
def test_what_go_takes(arguments, changed):
    found = parse(FLAGS, arguments)
    assert found.values == DEFAULTS | changed
    assert found.faults == []


@pytest.mark.parametrize(
    ("arguments", "changed", "faulty"),
    [
        (["--no=1"], {}, [(0, "unknown")]),
        (["--help"], {}, [(0, "unknown")]),
        (["--port=1", "stray", "--name=x"], {"port": 1}, [(1, "format")]),
        (["--", "--name=x"], {}, [(0, "format")]),
        (["-"], {}, [(0, "format")]),
        ([""], {}, [(0, "format")]),
        (["---port=1"], {}, [(0, "format")]),
        (["--=1"], {}, [(0, "format")]),
        (["--port"], {}, [(0, "required")]),
        (["--port="], {}, [(0, "type")]),
        (["--port=two"], {}, [(0, "type")]),
        (["--port=1.5"], {}, [(0, "type")]),
        (["--port=08"], {}, [(0, "type")]),
        (["--port=1__0"], {}, [(0, "type")]),
        (["--port=_1"], {}, [(0, "type")]),
        (["--port=1_"], {}, [(0, "type")]),
        (["--port= 1"], {}, [(0, "type")]),
        (["--port=٣"], {}, [(0, "type")]),
        (["--port=9223372036854775808"], {}, [(0, "range")]),
        (["--on=yes"], {}, [(0, "format")]),
        (["--on", "true"], {"on": True}, [(1, "format")]),
        (["--name=x", "--port=x", "--on"], {"name": "x"}, [(1, "type")]),
        (["--a=1", "--b=2"], {}, [(0, "unknown"), (1, "unknown")]),
    ],
)
def test_what_go_stops_at_is_a_fault_and_what_stands_behind_it_keeps_its_default(arguments, changed, faulty):
    found = parse(FLAGS, arguments)
    assert found.values == DEFAULTS | changed
    assert [(fault.index, fault.code) for fault in found.faults] == faulty


def test_a_port_is_one():
    for text, code in (("0", "range"), ("65536", "range"), ("-1", "range")):
        assert [fault.code for fault in parse([Flag("port", 22, is_port=True)], [f"--port={text}"]).faults] == [code]
    assert parse([Flag("port", 22, is_port=True)], ["--port=65535"]).values == {"port": 65535}


arguments_of_any_kind = st.lists(
    st.one_of(st.text(max_size=12), st.sampled_from(["--port", "--name", "--on", "-key", "--", "--port=1", "--name=x", "--on=0"]))
)


@given(arguments_of_any_kind)
def test_no_arguments_break_the_reading(arguments):
    found = parse(FLAGS, arguments)
    assert found.values.keys() == DEFAULTS.keys()
    assert all(type(value) is type(DEFAULTS[name]) for name, value in found.values.items())
    assert [fault.index for fault in found.faults] == sorted(fault.index for fault in found.faults)


@given(st.integers(-(2**63), 2**63 - 1), st.booleans(), st.text(), st.sampled_from(["-", "--"]), st.booleans())
def test_what_is_written_is_read(number, on, text, dashes, apart):
    arguments = [f"{dashes}on={str(on).lower()}"]
    for name, value in (("port", str(number)), ("name", text)):
        arguments += [f"{dashes}{name}", value] if apart else [f"{dashes}{name}={value}"]
    found = parse(FLAGS, arguments)
    assert found.faults == []
    assert found.values == {"port": number, "on": on, "name": text, "key": ""}


@given(st.text(min_size=20, max_size=30), arguments_of_any_kind, st.booleans(), st.sampled_from(["-", "--"]))
def test_a_secret_is_hidden_and_nothing_else(secret, before, apart, dashes):
    """Whatever stands in front, as long as it ends before the secret's flag."""
    before = [*before, "--on"]
    given_as = [f"{dashes}key", secret] if apart else [f"{dashes}key={secret}"]
    shown = hidden(FLAGS, [*before, *given_as], "***")
    assert secret not in "".join(shown[len(before) - 1 :])
    assert len(shown) == len(before) + len(given_as)
    understood = parse(FLAGS, before)
    if not understood.faults:
        assert parse(FLAGS, shown).values["key"] in ("***", understood.values["key"])


@given(arguments_of_any_kind)
def test_faults_repeat_no_value(arguments):
    secret = "correct horse battery staple"
    found = parse(FLAGS, [*arguments, f"--port={secret}", f"--on={secret}", secret, f"--{'x' * 50}={secret}"])
    assert all(secret not in fault.message for fault in found.faults)
