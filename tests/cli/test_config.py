"""The configuration: whole or not at all, for its user's eyes, and clear about what is wrong in it."""

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from basalt.terminal import config
from basalt.terminal.config import Context
from basalt.terminal.exits import ConfigError
from tests.cli.program import basalt

WHERE = Path("config/basalt/config.yaml")


def write(text: str, mode: int = 0o600) -> None:
    WHERE.parent.mkdir(parents=True, exist_ok=True)
    WHERE.write_text(text)
    WHERE.chmod(mode)


def test_it_is_made_for_its_user_alone():
    with config.changing() as found:
        found.contexts["a"] = Context("http://a", token="secret")
    assert stat.S_IMODE(WHERE.stat().st_mode) == 0o600
    assert stat.S_IMODE(WHERE.parent.stat().st_mode) == 0o700
    assert config.load().contexts["a"].token == "secret"
    assert {path.name for path in WHERE.parent.iterdir()} == {"config.yaml", "config.yaml.lock"}


def test_a_change_that_breaks_off_leaves_what_was_there():
    with config.changing() as found:
        found.contexts["a"] = Context("http://a")
    before = WHERE.read_text()
    changing = config.changing()
    changing.__enter__().contexts.clear()
    assert not changing.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert WHERE.read_text() == before


def test_a_write_that_breaks_off_leaves_what_was_there(monkeypatch):
    with config.changing() as found:
        found.contexts["a"] = Context("http://a")
    before = WHERE.read_text()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), config.changing() as found:
        found.contexts.clear()
    assert WHERE.read_text() == before
    assert {path.name for path in WHERE.parent.iterdir()} == {"config.yaml", "config.yaml.lock"}


def test_a_link_to_the_file_stays_a_link():
    Path("dotfiles").mkdir()
    Path("dotfiles/basalt.yaml").touch(0o600)
    WHERE.parent.mkdir(parents=True)
    WHERE.symlink_to(Path("dotfiles/basalt.yaml").resolve())
    with config.changing() as found:
        found.contexts["a"] = Context("http://a")
    assert WHERE.is_symlink()
    assert "http://a" in Path("dotfiles/basalt.yaml").read_text()


def test_two_commands_at_once_both_keep_theirs():
    script = "from basalt.main import basalt; basalt()"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", script, "context", "set", f"c{number}", "--server", "http://a"], stdout=subprocess.DEVNULL
        )
        for number in range(6)
    ]
    assert [process.wait(30) for process in started] == [0] * 6
    assert sorted(config.load().contexts) == [f"c{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("current: a\ncontexts:\n  a: {server: 'http://a'\n", "line 4 is not whole"),
        ("contexts:\n  a:\n    server: [1\n", "line 4 is not whole"),
        ("- a\n", "is no configuration"),
        ("contexts: [a]\n", "is no configuration"),
        ("contexts: {a: {}}\n", "context 'a' names no server"),
        ("contexts: {a: {server: http://a, tokn: x}}\n", "unknown entry 'tokn'"),
        ("contexts: {a: {server: http://a, token: 7}}\n", "'token' of context 'a' must be text, not 7"),
    ],
)
def test_a_file_that_is_not_right_is_told_with_its_place_and_what_to_do(text, why):
    write(text)
    said = basalt("job", "list", code=6)
    assert str(WHERE) in said.err
    assert why in said.err
    assert "Mend it, or begin anew: rm " in said.err
    with pytest.raises(ConfigError), config.changing():
        raise AssertionError("what cannot be read is not written over")
    assert WHERE.read_text() == text


def test_an_empty_file_and_none_at_all_are_the_same():
    write("")
    assert config.load() == config.Config()
    WHERE.unlink()
    assert config.load() == config.Config()
    assert basalt("context", "list").out == "No resources found\n"


def test_a_file_that_others_can_read_is_warned_of():
    write("current: a\ncontexts: {a: {server: 'http://127.0.0.1:1'}}\n", 0o644)
    assert "Warning: Others on this machine can read" in basalt("job", "list", code=3).err


def test_a_context_that_is_not_there_is_told_with_those_that_are():
    write("contexts: {home: {server: 'http://a'}, work: {server: 'http://b'}}\n")
    for args in (
        ("job", "list", "--context", "x"),
        ("context", "use", "x"),
        ("context", "delete", "x"),
        ("context", "set", "x", "-n", "n"),
    ):
        said = basalt(*args, code=6)
        assert "There is no context 'x'" in said.err
        assert "there are: home, work." in said.err


def test_a_context_of_another_server_forgets_its_token():
    write("current: a\ncontexts: {a: {server: 'http://a', token: t, expiry: '2999-01-01T00:00:00Z'}}\n")
    basalt("context", "set", "a", "--server", "http://b")
    assert config.load().contexts["a"] == Context("http://b")


def test_a_token_that_has_expired_is_told_without_asking():
    write("current: a\ncontexts: {a: {server: 'http://127.0.0.1:1', token: t, expiry: '2020-01-01T00:00:00Z'}}\n")
    said = basalt("job", "list", code=3)
    assert said.err == (
        "Error: The token for http://127.0.0.1:1 has expired at 2020-01-01T00:00:00Z.\nSign in again: basalt login http://127.0.0.1:1\n"
    )


def test_ctrl_c_while_a_password_is_asked_changes_nothing():
    write("current: a\ncontexts: {a: {server: 'http://127.0.0.1:1', token: t}}\n")
    before = WHERE.read_text()
    script = "from basalt.main import basalt; basalt()"
    import pty

    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", script, "login", "http://127.0.0.1:1", "-u", "me"],
        stdin=slave, stdout=subprocess.PIPE, stderr=slave, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # who runs the tests in the background ignores it
    )  # fmt: skip
    read = b""
    while b"Password of me" not in read:
        read += os.read(master, 1024)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    os.close(master)
    os.close(slave)
    assert WHERE.read_text() == before


def test_nobody_is_asked_where_there_is_no_terminal():
    said = basalt("login", "http://127.0.0.1:1", "-u", "me", code=2)
    assert "--password-stdin" in said.err
    assert "User name is not given" in basalt("login", "http://127.0.0.1:1", code=2).err


@pytest.mark.parametrize("address", ["127.0.0.1:8000", "ftp://a", "http://", "http://a:x", "http://a:99999", "http://a?x=1"])
def test_what_is_no_address_is_told(address):
    assert f"{address!r} is no address of a server" in basalt("login", address, code=6).err
