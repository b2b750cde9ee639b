"""The behaviour cases beside the project, played as `manage.py scenario` plays them."""

from __future__ import annotations

import pytest

from portal.scenario import Case, load, play
from tests.conftest import SHARED

FILE = SHARED / "cases" / "cases.yaml"
CASES = load(FILE.read_text("utf-8")) if FILE.is_file() else []

NOT_YET = {
    "s-portal-job-shows-pod-trouble": "the list and the job's page do not tell a running pod's trouble",
}
"""Cases that do not pass yet, and why. One that passes fails here until it is struck off."""


@pytest.mark.skipif(not CASES, reason="no folder of shared cases beside the project")
@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case):
    outcome = play(case)
    if case.id in NOT_YET:
        assert not outcome.passed, f"it passes now: strike {case.id} off NOT_YET"
        pytest.xfail(f"{NOT_YET[case.id]}: {'; '.join(outcome.seen)}")
    assert outcome.seen == []


@pytest.mark.skipif(not CASES, reason="no folder of shared cases beside the project")
def test_only_known_cases_are_listed():
    assert NOT_YET.keys() <= {case.id for case in CASES}
