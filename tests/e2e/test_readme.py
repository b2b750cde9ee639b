"""What README promises to a newcomer, done to the letter."""

import re
import subprocess

import pytest

from tests.e2e.server import ROOT, Server, wait_for

BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def test_the_curl_lines_of_the_readme_run_a_gang_to_its_end(server: Server):
    lines = next(block for block in BLOCK.findall((ROOT / "README.md").read_text()) if "curl" in block)
    script = lines.replace("PASSWORD", server.password).replace("http://127.0.0.1:8000", server.url)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert '"first-gang"' in done.stdout
    with server.client() as client:
        job = wait_for(
            lambda: (row := client.get("/jobs/default/first-gang").json())["phase"] == "Completed" and row, 30, "Completed"
        )
    assert (job["succeeded"], job["min_available"]) == (3, 3)


def test_a_second_start_on_the_same_data_says_who_holds_it(server: Server):
    with pytest.raises(AssertionError, match=r"process \d+"):
        Server(server.data).start()


def test_ctrl_c_stops_cleanly_and_everything_is_there_again(fresh_data):
    server = Server(fresh_data, "--speed", "60")
    server.start()
    with server.client() as client:
        before = client.get("/nodes", params={"limit": 100}).json()["results"]
    assert len(before) >= 30
    assert server.stop() == 0
    assert "Traceback" not in server.output()
    server.start()
    with server.client() as client:
        assert client.get("/nodes", params={"limit": 100}).json()["results"] == before
    assert server.stop() == 0
