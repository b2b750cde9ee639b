"""What `manage.py run` refuses before it begins anything."""

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize("speed", ["0", "-1", "fast", "nan", "20000"])
def test_a_speed_out_of_range_is_refused_in_words(speed):
    with pytest.raises(CommandError, match=f"a speed is a number above 0 and at most 10000, not {speed}"):
        call_command("run", f"--speed={speed}")
