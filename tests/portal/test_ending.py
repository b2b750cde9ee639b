"""A run ends in time and says so, whatever hangs and however often it is asked."""

import os
import signal
import subprocess
import sys
import time

import pytest

HANGS = """
import time
from portal import ending
ending.LONGEST = 0.5
end = ending.Ending()
end.slow = lambda: ["scheduler"]
end.listen()
try:
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
except KeyboardInterrupt:
    {then}
"""


def ended(then: str, signals: int) -> tuple[int, str, str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGS.format(then=then)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(signals):
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
    out, err = process.communicate(timeout=10)
    return process.returncode, out, err


@pytest.mark.parametrize("signals", [1, 3])
def test_what_hangs_is_named_and_the_process_ends(signals: int):
    assert ended("time.sleep(60)", signals) == (0, "Stopped.\n", "Did not stop in time: scheduler\n")


def test_a_second_signal_does_not_cut_off_the_last_words():
    then = "time.sleep(0.3); print('Stopped.' if end.has_last_word() else 'twice', flush=True)"
    assert ended(then, 2) == (0, "Stopped.\n", "")
