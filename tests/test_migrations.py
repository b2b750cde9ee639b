"""Models and migrations agree."""

import pytest
from django.core.management import call_command


@pytest.mark.django_db(databases=["default", "cluster"])
def test_no_model_change_lacks_a_migration(capsys: pytest.CaptureFixture[str]):
    call_command("makemigrations", check=True, dry_run=True)  # leaves by SystemExit where one is missing
    assert "No changes detected" in capsys.readouterr().out
