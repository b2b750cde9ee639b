"""The configuration edited: faults with lines, what is different, who saved what, and nobody overwriting anybody."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.urls import reverse

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from portal import parts
from portal.cockpit import configuration, versions
from portal.cockpit.places import FilePlace
from portal.cockpit.versions import Live
from portal.decisions import Sink
from portal.models import ConfigurationVersion, SchedulerConfiguration
from scheduler import conf
from scheduler.source import ConfSource, ConfState

pytestmark = pytest.mark.django_db

TEXT = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
OTHER = TEXT.replace("  - name: gang\n", "  - name: gang\n  - name: binpack\n    arguments:\n      binpack.weight: 3\n")
TYPO = OTHER.replace("binpack.weight", "binpack.wieght")


@pytest.fixture
def file(tmp_path, settings):
    """A scheduler of this process that reads a file, and has told its configuration."""
    settings.DATA_DIR = tmp_path
    path = tmp_path / "mine.conf"
    path.write_text(TEXT)
    source = ConfSource(path, 1000.0)
    runtime.use(EmbeddedCluster())
    parts.use(
        SimpleNamespace(scheduler=SimpleNamespace(conf=source, cache=SimpleNamespace(usage=None)), is_running=lambda name: True)
    )  # type: ignore[arg-type]
    tell(source.state)
    yield path
    parts.use(None)
    runtime.use(None)


def tell(state: ConfState) -> None:
    sink = Sink()
    sink.configured(state)
    sink.write()


def source() -> ConfSource:
    return parts.current().scheduler.conf


def send(client, text: str, do: str = "save", base: int | None = None, note: str = ""):
    newest = versions.newest()
    given = {"text": text, "do": do, "base": base if base is not None else newest.pk, "note": note}
    return client.post(reverse("cockpit:edit"), given)


def test_each_text_that_was_in_force_is_a_version_once():
    for text in (TEXT, TEXT, OTHER):
        tell(ConfState("/etc/x.conf", text, 1000.0))
    assert [each.text for each in ConfigurationVersion.objects.all()] == [OTHER, TEXT]


def test_an_unknown_argument_is_a_fault_in_the_editor_and_a_warning_where_it_is_in_force(client, make_user, file):
    (fault,) = configuration.check(TYPO).faults
    assert (fault.line, "did you mean binpack.weight?" in fault.message) == (8, True)
    client.force_login(make_user("boss", staff=True))
    answer = send(client, TYPO)
    assert answer.status_code == 422
    assert '<span class="here"><i>8</i>' in answer.content.decode()
    assert file.read_text() == TEXT
    tell(ConfState(str(file), TYPO, 2000.0))
    assert "did you mean binpack.weight?" in client.get(reverse("cockpit:configuration")).content.decode()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 0, "empty"),
        ("actions: [", 2, "not YAML"),
        (TEXT.replace("gang", "gong"), 5, "known are"),
        (TEXT.replace("allocate", "alocate"), 1, "known are"),
        (OTHER.replace("3", "three"), 8, "whole number"),
        ("x" * (conf.LONGEST + 1), 0, "at most"),
    ],
)
def test_faults_say_the_line_and_what_would_be_right(text, line, words):
    first = configuration.check(text).faults[0]
    assert (first.line, words in first.message) in ((line, True), (1, True))


def test_what_is_saved_is_read_by_the_running_scheduler_and_says_who(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    assert send(client, OTHER.replace("\n", "\r\n"), note="for whole nodes").status_code == 302
    assert file.read_text() == OTHER
    assert source().reload(2000.0)
    assert [option.name for option in source().current.plugins()] == ["priority", "gang", "binpack"]
    tell(source().state)
    newest, oldest = ConfigurationVersion.objects.all()
    assert (newest.who, newest.note, newest.text, oldest.who) == ("boss", "for whole nodes", OTHER, "")
    html = client.get(reverse("cockpit:history")).content.decode()
    assert re.search(r'<span class="add">\+  - name: binpack</span>', html)


def test_two_who_began_from_the_same_version_do_not_overwrite_each_other(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    base = versions.newest().pk
    assert send(client, OTHER, base=base).status_code == 302
    late = send(client, OTHER.replace("3", "9"), base=base)
    assert late.status_code == 409
    html = late.content.decode()
    assert "Your text is still here" in html
    assert "binpack.weight: 9" in html
    assert file.read_text() == OTHER
    assert re.search(rf'name="base" value="{versions.newest().pk}"', html)
    assert send(client, OTHER.replace("3", "9")).status_code == 302


def test_an_older_version_can_be_put_in_force_again(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    first = versions.newest()
    send(client, OTHER)
    url = reverse("cockpit:roll_back", args=[first.pk])
    client.post(url, {"base": first.pk})
    assert file.read_text() == OTHER  # made from a page that is no longer true
    client.post(url, {"base": versions.newest().pk})
    assert file.read_text() == TEXT
    assert versions.newest().note == f"as version {first.pk}"
    for language, said in (("en", f"as version {first.pk}"), ("zh-hans", f"同版本 {first.pk}")):
        client.cookies["django_language"] = language
        assert said in client.get(reverse("cockpit:history")).content.decode()


def test_a_new_version_is_followed_until_the_scheduler_runs_by_it(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    asks = 'id="sc-page" data-refresh hx-get="" hx-trigger="every 2s" hx-select="#sc-page" hx-swap="outerHTML"'
    send(client, OTHER)
    assert asks in client.get(reverse("cockpit:configuration")).content.decode()
    SchedulerConfiguration.objects.update(text=OTHER)
    html = client.get(reverse("cockpit:configuration")).content.decode()
    assert 'id="sc-page"' in html
    assert "hx-trigger" not in html.partition('id="sc-page"')[2].partition(">")[0]


def test_the_file_that_came_with_the_program_stays_as_it_came(client, make_user, file, settings):
    shipped = Path(settings.BASE_DIR) / "deploy" / "volcano-scheduler.conf"
    before = shipped.read_text()
    found = ConfSource(shipped, 1000.0)
    parts.use(
        SimpleNamespace(scheduler=SimpleNamespace(conf=found, cache=SimpleNamespace(usage=None)), is_running=lambda name: True)
    )
    tell(found.state)
    client.force_login(make_user("boss", staff=True))
    assert send(client, OTHER).status_code == 302
    assert shipped.read_text() == before
    assert configuration.own_file().read_text() == OTHER
    assert found.reload(2000.0)
    assert found.state.source == str(configuration.own_file())


def test_where_the_scheduler_is_elsewhere_nothing_is_written_and_a_download_is_offered(client, make_user):
    tell(ConfState("/etc/volcano-scheduler.conf", TEXT, 1000.0))
    runtime.use(EmbeddedCluster())
    client.force_login(make_user("boss", staff=True))
    html = client.get(reverse("cockpit:edit")).content.decode()
    assert "process of its own" in html
    assert 'value="save"' not in html
    assert send(client, OTHER).status_code == 403
    sent = client.post(reverse("cockpit:download"), {"text": OTHER})
    assert sent.content.decode() == OTHER
    runtime.use(None)


def test_what_a_text_would_do_is_shown_before_it_is_saved(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    html = send(client, OTHER, do="check").content.decode()
    assert "Nothing would move" in html
    assert "Nothing was written" in html
    assert file.read_text() == TEXT
    assert ConfigurationVersion.objects.count() == 1


def test_rest_checks_and_saves_with_the_same_care(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    told = client.get("/api/v1/scheduler/configuration").json()
    assert (told["text"], told["writable"]) == (TEXT, True)
    checked = client.post("/api/v1/scheduler/configuration/check", {"text": TYPO}, "application/json").json()
    assert checked["faults"][0]["line"] == 8
    body = {"text": OTHER, "version": told["version"], "note": "n"}
    assert client.put("/api/v1/scheduler/configuration", body, "application/json").json()["who"] == "boss"
    assert client.put("/api/v1/scheduler/configuration", body, "application/json").json()["version"] == versions.newest().pk
    stale = body | {"text": TEXT}
    assert client.put("/api/v1/scheduler/configuration", stale, "application/json").status_code == 409
    wrong = client.put("/api/v1/scheduler/configuration", {**body, "text": TYPO}, "application/json")
    assert wrong.status_code == 400
    assert file.read_text() == OTHER
    assert SchedulerConfiguration.objects.get().text == TEXT  # until the scheduler has told


def test_what_is_sent_twice_is_saved_once(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    base = versions.newest().pk
    for _press in range(2):
        assert send(client, OTHER, base=base).status_code == 302
    assert [each.text for each in ConfigurationVersion.objects.all()] == [OTHER, TEXT]


def test_nobody_looks_while_a_file_is_half_saved(client, make_user, file, monkeypatch):
    client.force_login(make_user("boss", staff=True))
    place = configuration.target().place
    write, look, half, seen = FilePlace.write, versions.look, threading.Event(), threading.Event()
    looks = []

    def look_on(*given, **words):
        looks.append(half.is_set())
        seen.set()
        return Live(None) if threading.current_thread() is other else look(*given, **words)

    def write_half(self, text, live):
        half.set()
        other.start()
        seen.clear()
        assert not seen.wait(0.2)
        write(self, text, live)
        half.clear()

    other = threading.Thread(target=lambda: configuration._look(place))
    monkeypatch.setattr(FilePlace, "write", write_half)
    monkeypatch.setattr(versions, "look", look_on)
    assert send(client, OTHER).status_code == 302
    other.join()
    assert looks.count(True) == 0
    assert versions.newest().who == "boss"


def test_long_lines_with_faults_are_shown_cut_and_a_first_line_break_is_kept(client, make_user, file):
    client.force_login(make_user("boss", staff=True))
    html = send(client, "\nactions: enqueue\ntiers: [" + "a," * 4_000 + "]\n").content.decode()
    assert html.count("must be a mapping") == 100
    assert len(html) < 400_000
    assert 'name="text"' in html
    assert re.search(r"<textarea[^>]*>\n\nactions: enqueue", html)
