"""The project holds together: no missing migrations."""

import pytest
from django.core.management import call_command


@pytest.mark.django_db(databases=["default", "cluster"])
def test_no_model_change_lacks_a_migration():
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    assert True
