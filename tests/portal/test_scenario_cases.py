"""The behaviour cases beside the project, played as `manage.py scenario` plays them."""

from __future__ import annotations

import pytest

from portal.scenario import Case, load, play
from tests.conftest import SHARED

FILE = SHARED / "cases" / "cases.yaml"
CASES = load(FILE.read_text("utf-8")) if FILE.is_file() else []


@pytest.mark.skipif(not CASES, reason="no folder of shared cases beside the project")
@pytest.mark.django_db
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case: Case):
    assert play(case).seen == []
