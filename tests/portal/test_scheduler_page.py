"""The page of the configuration: what is in force, and a broken newer version with its line."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from portal.decisions import Sink
from portal.models import SchedulerConfiguration
from scheduler import conf
from scheduler.conf import Fault
from scheduler.framework.record import CycleRecord
from scheduler.source import ConfState

pytestmark = pytest.mark.django_db

TEXT = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
- plugins:
  - name: binpack
    arguments:
      binpack.weight: 3
      extender.password: hunter2
configurations:
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
"""
BROKEN = TEXT.replace("binpack.weight: 3", "binpack.weight: three")
PATH = "/etc/volcano-scheduler.conf"


def told(state: ConfState, *records: CycleRecord) -> None:
    sink = Sink()
    sink.configured(state)
    for record in records:
        sink(record)
    sink.write()


def page(client, user) -> str:
    client.force_login(user)
    response = client.get(reverse("cockpit:configuration"))
    assert response.status_code == 200
    return response.content.decode()


def plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


def test_the_configuration_in_force_is_shown_with_its_file_and_parts(client, make_user):
    told(ConfState(PATH, TEXT, 1000.0))
    shown = plain(page(client, make_user()))
    assert PATH in shown
    for words in ("priority", "enablePreemptable: false", "binpack.weight: 3", "enableTopologyAwarePreemption: true", "valid"):
        assert words in shown
    assert shown.index(" enqueue ") < shown.index(" allocate ") < shown.index(" preempt ")
    assert "hunter2" not in shown


def test_a_broken_newer_version_is_told_with_its_line_and_the_old_one_stays(client, make_user):
    told(ConfState(PATH, TEXT, 1000.0, BROKEN, (Fault(10, "binpack: 'three' must be a whole number"), Fault(0, "and more"))))
    html = page(client, make_user("boss", staff=True))
    shown = plain(html)
    for words in (
        "A newer version is not used",
        "Line 10: binpack: &#x27;three&#x27; must be a whole number",
        "and more",
    ):
        assert words in shown
    here, *_odd = re.findall(r'<span class="here"><i>(\d+)</i>([^<]*)</span>', html)
    assert here == ("10", "      binpack.weight: three")
    assert "binpack.weight: 3" in shown
    assert "newer version broken" in shown


def test_the_file_itself_is_for_staff(client, make_user):
    told(ConfState(PATH, TEXT, 1000.0, BROKEN, (Fault(10, "must be a whole number"),)))
    html = page(client, make_user())
    assert "sc-text" not in html
    assert "sc-lines" not in html
    assert "Line 10:" in html
    assert "sc-text" in page(client, make_user("boss", staff=True))


def test_what_is_built_in_has_no_file(client, make_user):
    told(ConfState("", conf.DEFAULT, 1000.0))
    assert "built in" in plain(page(client, make_user()))


def test_a_mended_file_takes_the_fault_back(client, make_user):
    told(ConfState(PATH, TEXT, 1000.0, BROKEN, (Fault(10, "wrong"),)))
    told(ConfState(PATH, TEXT.replace("3", "5"), 2000.0))
    row = SchedulerConfiguration.objects.get()
    assert (row.broken, row.faults) == ("", [])
    assert "binpack.weight: 5" in plain(page(client, make_user()))


def test_before_any_scheduler_ran_the_page_says_so(client, make_user):
    shown = plain(page(client, make_user()))
    assert "No scheduler has told its configuration yet." in shown


def test_a_configuration_of_another_version_is_no_server_error(client, make_user):
    told(ConfState(PATH, TEXT.replace("binpack\n", "gone-plugin\n"), 1000.0))
    assert "gone-plugin" in plain(page(client, make_user()))
