"""The configuration in a ConfigMap, edited on the page: nobody is overwritten, and what is not allowed or not there is told."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.urls import reverse

from cluster import runtime
from cluster.embedded.store import EmbeddedCluster
from cluster.errors import Conflict, Forbidden, Unanswered, Unavailable
from cluster.kinds import CONFIG_MAP
from portal.cockpit import configuration, versions
from portal.cockpit.versions import Live
from portal.decisions import Sink
from portal.models import ConfigurationVersion, Writing
from scheduler.configmap import KEY
from scheduler.source import ConfState

pytestmark = pytest.mark.django_db

TEXT = 'actions: "enqueue, allocate"\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n'
OTHER = TEXT.replace("  - name: gang\n", "  - name: gang\n  - name: binpack\n    arguments:\n      binpack.weight: 3\n")
THEIRS = TEXT.replace("allocate", "allocate, backfill")
PLACE = f"basalt-system/basalt-scheduler-conf:{KEY}"
NAME, NAMESPACE = "basalt-scheduler-conf", "basalt-system"


class Cluster(EmbeddedCluster):
    """A cluster that refuses, or keeps its answers, when it is told to; `between` is done before a write is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.forbids, self.between, self.unanswered = False, None, None

    def patch(self, kind, name, namespace, body, **options):
        self._before(options)
        done = super().patch(kind, name, namespace, body, **options)
        self._after(options)
        return done

    def create(self, kind, obj, **options):
        if kind == CONFIG_MAP:
            self._before(options)
        return super().create(kind, obj, **options)

    def _before(self, options) -> None:
        if self.forbids:
            raise Forbidden("configmaps is forbidden: basalt-web cannot patch it")
        if not options.get("dry_run"):
            if self.between is not None:
                between, self.between = self.between, None
                between()
            if self.unanswered == "lost":
                raise Unanswered("no answer")

    def _after(self, options) -> None:
        if not options.get("dry_run") and self.unanswered == "kept":
            self.unanswered = None
            raise Unanswered("no answer")


@pytest.fixture
def cluster():
    """A cluster with the ConfigMap, by which a scheduler of another process runs."""
    cluster = Cluster()
    cluster.create(CONFIG_MAP, {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {KEY: TEXT, "other": "kept"}})
    runtime.use(cluster)
    tell(TEXT)
    yield cluster
    runtime.use(None)


@pytest.fixture
def boss(client, make_user):
    client.force_login(make_user("boss", staff=True))
    return client


def tell(text: str, **more) -> None:
    """The scheduler says what it runs by."""
    sink = Sink()
    sink.configured(ConfState(**{"source": PLACE, "text": text, "since": runtime.now().timestamp(), "watched": PLACE, **more}))
    sink.write()


def kubectl(cluster, text: str) -> None:
    """Somebody changes it outside the portal."""
    EmbeddedCluster.patch(cluster, CONFIG_MAP, NAME, NAMESPACE, {"data": {KEY: text}})


def data(cluster) -> dict[str, str]:
    return cluster.get(CONFIG_MAP, NAME, NAMESPACE)["data"]


def send(client, text: str, base: int | None = None, do: str = "save"):
    newest = versions.newest()
    return client.post(reverse("cockpit:edit"), {"text": text, "do": do, "base": base if base is not None else newest.pk})


def history() -> list[tuple[str, str, str]]:
    return [(each.who, each.text, each.writing) for each in ConfigurationVersion.objects.all()]


def page(client, name: str) -> str:
    return client.get(reverse(f"cockpit:{name}")).content.decode()


def test_what_is_saved_is_in_the_config_map_and_says_who(cluster, boss):
    html = page(boss, "edit")
    assert PLACE in html
    assert 'value="save"' in html
    assert send(boss, OTHER).status_code == 302
    assert data(cluster) == {KEY: OTHER, "other": "kept"}
    assert history() == [("boss", OTHER, "done"), ("", TEXT, "done")]


def test_the_page_says_which_version_is_in_force_until_the_scheduler_has_taken_it_up(cluster, boss):
    send(boss, OTHER)
    first, second = (versions.in_force().pk, versions.newest().pk)
    words = f"Version {second} is there, and the scheduler does not run by it yet: it runs by version {first}."
    assert words in page(boss, "configuration")
    assert "not in force yet" in page(boss, "history")
    told = boss.get("/api/v1/scheduler/configuration").json()
    assert (told["version"], told["in_force"], told["place"], told["absent"]) == (second, first, PLACE, False)
    tell(OTHER)
    assert "does not run by it yet" not in page(boss, "configuration")
    assert versions.in_force().pk == second
    assert boss.get("/api/v1/scheduler/configuration").json()["in_force"] == second


def test_what_somebody_else_wrote_is_a_version_and_not_overwritten(cluster, boss):
    base = versions.newest().pk
    kubectl(cluster, THEIRS)
    late = send(boss, OTHER, base)
    assert late.status_code == 409
    assert data(cluster)[KEY] == THEIRS
    assert history() == [("", THEIRS, "done"), ("", TEXT, "done")]
    html = late.content.decode()
    assert "Your text is still here" in html
    assert re.search(r'<span class="del">-actions: &quot;enqueue, allocate, backfill&quot;</span>', html)
    assert re.search(rf'name="base" value="{versions.newest().pk}"', html)
    assert send(boss, OTHER).status_code == 302
    assert data(cluster)[KEY] == OTHER


def test_what_is_written_between_look_and_write_is_not_overwritten(cluster, boss):
    cluster.between = lambda: kubectl(cluster, THEIRS)
    assert send(boss, OTHER).status_code == 409
    assert data(cluster)[KEY] == THEIRS
    assert history() == [("", THEIRS, "done"), ("", TEXT, "done")]


def test_a_label_that_changes_in_between_is_a_conflict_that_loses_nothing(cluster, boss):
    label = {"metadata": {"labels": {"team": "a"}}}
    cluster.between = lambda: EmbeddedCluster.patch(cluster, CONFIG_MAP, NAME, NAMESPACE, label)
    assert send(boss, OTHER).status_code == 409
    assert history() == [("", TEXT, "done")]
    assert send(boss, OTHER).status_code == 302


def test_a_page_that_is_opened_shows_what_is_there_and_by_whom(cluster, boss):
    kubectl(cluster, THEIRS)
    entry = {"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {f"f:{KEY}": {}}}}
    EmbeddedCluster.patch(cluster, CONFIG_MAP, NAME, NAMESPACE, {"metadata": {"managedFields": [entry]}})
    html = page(boss, "edit")
    assert "allocate, backfill" in html
    assert "outside the portal" in html
    assert "kubectl-edit" in html
    assert "kubectl-edit" in page(boss, "history")
    assert len(history()) == 2


def test_the_program_is_named_though_the_scheduler_told_of_it_first(cluster, boss):
    kubectl(cluster, THEIRS)
    tell(THEIRS)
    entry = {"manager": "kubectl-edit", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:data": {f"f:{KEY}": {}}}}
    EmbeddedCluster.patch(cluster, CONFIG_MAP, NAME, NAMESPACE, {"metadata": {"managedFields": [entry]}})
    assert "outside the portal · kubectl-edit" in page(boss, "configuration")
    assert ConfigurationVersion.objects.count() == 2


def test_a_broken_text_of_somebody_else_is_shown_as_one_that_is_not_used(cluster, boss):
    kubectl(cluster, "actions: 3\n")
    (fault,) = configuration.check("actions: 3\n").faults[:1]
    tell(TEXT, broken="actions: 3\n", faults=(fault,))
    assert "is not used" in page(boss, "configuration")
    assert "does not run by it yet" not in page(boss, "configuration")
    assert versions.in_force().text == TEXT
    tell(TEXT, broken="actions: 3\n", faults=(fault,))  # as a scheduler does that begins anew
    assert len(history()) == 2
    url = reverse("cockpit:roll_back", args=[versions.in_force().pk])
    boss.post(url, {"base": versions.newest().pk})
    assert data(cluster)[KEY] == TEXT
    assert history() == [("boss", TEXT, "done"), ("", "actions: 3\n", "done"), ("", TEXT, "done")]


def test_without_the_right_the_page_says_so_and_offers_the_text(cluster, boss):
    cluster.forbids = True
    html = page(boss, "edit")
    assert f"The portal has no right to write the ConfigMap {NAMESPACE}/{NAME}: configmaps is forbidden" in html
    assert 'value="save"' not in html
    assert send(boss, OTHER).status_code == 403
    assert data(cluster)[KEY] == TEXT
    assert history() == [("", TEXT, "done")]
    told = boss.get("/api/v1/scheduler/configuration").json()
    assert (told["writable"], "configmaps is forbidden" in told["why_not"]) == (False, True)


def test_one_that_is_not_there_is_made_on_request(cluster, boss):
    cluster.delete(CONFIG_MAP, NAME, NAMESPACE)
    html = page(boss, "edit")
    assert f"The ConfigMap {NAMESPACE}/{NAME} is not there." in html
    assert "Create the ConfigMap" in html
    assert boss.get("/api/v1/scheduler/configuration").json()["absent"] is True
    assert send(boss, OTHER).status_code == 302
    assert data(cluster) == {KEY: OTHER}


def test_who_may_not_make_it_is_told_how_it_is_made(cluster, boss):
    cluster.delete(CONFIG_MAP, NAME, NAMESPACE)
    cluster.forbids = True
    html = page(boss, "edit")
    assert f"kubectl -n {NAMESPACE} create configmap {NAME} --from-file={KEY}=volcano-scheduler.conf" in html
    assert 'value="save"' not in html


def test_one_that_somebody_makes_meanwhile_is_not_overwritten(cluster, boss):
    cluster.delete(CONFIG_MAP, NAME, NAMESPACE)
    body = {"metadata": {"name": NAME, "namespace": NAMESPACE}, "data": {KEY: THEIRS}}
    cluster.between = lambda: EmbeddedCluster.create(cluster, CONFIG_MAP, body)
    assert send(boss, OTHER).status_code == 409
    assert data(cluster) == {KEY: THEIRS}


def test_a_cluster_that_cannot_be_read_is_told(cluster, boss, monkeypatch):
    def refuse(*_):
        raise Unavailable("the API server does not answer")

    monkeypatch.setattr(cluster, "get", refuse)
    for name in ("edit", "configuration", "history"):
        assert "cannot be read: the API server does not answer" in page(boss, name)
    assert send(boss, OTHER).status_code == 503


@pytest.mark.parametrize(("answer", "text", "writing"), [("kept", OTHER, Writing.DONE), ("lost", TEXT, Writing.LOST)])
def test_a_write_without_an_answer_is_settled_by_what_is_there(cluster, boss, answer, text, writing):
    cluster.unanswered = answer
    assert send(boss, OTHER).status_code == 503
    assert data(cluster)[KEY] == text
    ConfigurationVersion.objects.filter(writing=Writing.BEGUN).update(at=runtime.now() - timedelta(seconds=61))
    page(boss, "history")
    assert history()[0] == ("boss", OTHER, writing)
    assert versions.newest().text == text


class Killed(BaseException):
    """What ends a process, for want of a process."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_dies_while_writing_leaves_nothing_that_never_ran(cluster, boss, monkeypatch, moment):
    place = configuration.target().place
    write = type(place).write

    def dies(self, text, live):
        if moment == "after":
            write(self, text, live)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(type(place), "write", dies)
        with pytest.raises(Killed):
            configuration.save(OTHER, versions.newest().pk, "boss")
    assert history()[0] == ("boss", OTHER, "begun")
    page(boss, "history")
    if moment == "after":
        assert history() == [("boss", OTHER, "done"), ("", TEXT, "done")]
        return
    assert history()[0] == ("boss", OTHER, "begun")  # somebody may be writing it
    assert "being written" in page(boss, "history")
    assert send(boss, THEIRS).status_code == 302  # which changes what the other write would have replaced
    page(boss, "history")
    assert history() == [("boss", THEIRS, "done"), ("boss", OTHER, "lost"), ("", TEXT, "done")]
    assert "writing it was interrupted" in page(boss, "history")


def test_the_scheduler_itself_settles_what_was_begun_and_runs(cluster):
    versions.begin(OTHER, "boss", PLACE, "", configuration.target().place.read())
    tell(OTHER)
    assert history() == [("boss", OTHER, "done"), ("", TEXT, "done")]


def test_late_news_of_an_older_text_are_no_new_version(cluster, boss):
    before = runtime.now().timestamp() - 5
    send(boss, OTHER)
    tell(THEIRS, since=before)
    assert [text for _, text, _ in history()] == [OTHER, TEXT]


def test_what_changes_while_it_is_read_is_read_again(cluster, boss):
    reads = []

    def read():
        live = configuration.target().place.read()
        if not reads:
            kubectl(cluster, OTHER)
            versions.finish(versions.begin(OTHER, "quick", PLACE, "", live))
        reads.append(live.text)
        return live

    assert versions.look(read, PLACE, alone=False).text == OTHER
    assert (reads, history()) == ([TEXT, OTHER], [("quick", OTHER, "done"), ("", TEXT, "done")])


def test_an_immutable_one_is_refused_and_told(cluster, boss):
    EmbeddedCluster.patch(cluster, CONFIG_MAP, NAME, NAMESPACE, {"immutable": True})
    answer = send(boss, OTHER)
    assert (answer.status_code, "immutable" in answer.content.decode()) == (422, True)
    assert history() == [("", TEXT, "done")]


def test_rest_saves_with_the_same_care(cluster, boss):
    base = boss.get("/api/v1/scheduler/configuration").json()["version"]
    kubectl(cluster, THEIRS)
    body = {"text": OTHER, "version": base}
    assert boss.put("/api/v1/scheduler/configuration", body, "application/json").status_code == 409
    told = boss.get("/api/v1/scheduler/configuration/versions").json()
    assert [(each["who"], each["writing"]) for each in told] == [("", "done"), ("", "done")]
    body = {"text": OTHER, "version": told[0]["version"]}
    assert boss.put("/api/v1/scheduler/configuration", body, "application/json").json()["who"] == "boss"
    assert data(cluster)[KEY] == OTHER


def test_who_may_only_look_changes_nothing(cluster, client, make_user):
    client.force_login(make_user("anna"))
    kubectl(cluster, THEIRS)
    assert client.get(reverse("cockpit:configuration")).status_code == 200
    assert send(client, OTHER).status_code == 403
    assert data(cluster)[KEY] == THEIRS
    with pytest.raises(Conflict):
        configuration.save(OTHER, versions.newest().pk, "x")


@pytest.mark.parametrize("odd", ["\x00", "\ud800", "é\u2028"])
@pytest.mark.parametrize("where", ["text", "note"])
def test_odd_characters_are_refused_or_kept_and_nothing_breaks(cluster, boss, odd, where):
    given = {"text": OTHER, "version": versions.newest().pk, "note": ""}
    given[where] += f"# {odd}"
    answer = boss.put("/api/v1/scheduler/configuration", given, "application/json")
    assert answer.status_code in (200, 400)
    expected = given["text"] if answer.status_code == 200 else TEXT
    assert (data(cluster)[KEY], versions.newest().text) == (expected, expected)
    assert ConfigurationVersion.objects.filter(writing=Writing.BEGUN).count() == 0


def test_what_others_write_is_kept_as_a_database_can(cluster, boss):
    versions.look(lambda: Live(f"{TEXT}# \0", "7", "vim"), "a/b:c", alone=False)
    assert (versions.newest().text, versions.newest().note) == (f"{TEXT}# \N{REPLACEMENT CHARACTER}", "vim")
