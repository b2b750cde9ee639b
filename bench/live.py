"""The live channel under load: very many browsers' sockets on the map of GPUs and the job list while pods change all the time.

Run it as `python -m bench.live [--clients N] [--seconds N] [--pods N]`. A server process has 1,000 nodes, 2,000 jobs and 8,000
pods in the store; pods end and begin at the given rate, and go through store, mirror, database and hub to the sockets. Each
client shows one page of the job list and the whole map. Every client's line is cut once, at a time of its own, and a fifth of
them all at once; each comes back with the last number it saw. Aims: a change is with its browser within a second (p95), the
server's memory is flat, and in the end each client has what is true.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bench.live_server import GPUS, POD_PHASES
from bench.table import show

SHOWN = 50
"""Jobs on a page of the list."""
QUIET, PATIENCE = 2.0, 60.0
"""Seconds without a message after which everything has arrived; seconds for which that is waited for."""
AIM = 1.0
"""Seconds from a change to its message, for 95 of 100."""
FLAT = 0.1
"""By how much of itself the server's memory may grow over the second half."""


@dataclass(slots=True, eq=False)
class Message:
    """One message, read once for all clients that got it: GPUs as (pod, is held), jobs as (job, count)."""

    topic: str
    kind: str
    seq: int
    facts: list[tuple[int, int]]


@dataclass
class Browser:
    """One client: what it shows, and what it got when."""

    shown: list[str]
    cuts: list[float]
    seqs: dict[str, int | None] = field(default_factory=lambda: {"topology": None, "jobs": None})
    got: list[tuple[float, Message]] = field(default_factory=list)
    lost: int = 0
    gaps: int = 0


class Crowd:
    """All clients, in one process that does as little as it can."""

    def __init__(self, url: str, token: str, uids: list[str], count: int, seconds: float) -> None:
        rng = random.Random(1)
        self.url, self.headers = url, {"Authorization": f"Token {token}"}
        self.place = {uid: number for number, uid in enumerate(uids)}
        pages = [uids[start : start + SHOWN] for start in range(0, len(uids), SHOWN)]
        together = seconds * 0.6
        self.browsers = [
            Browser(pages[n % len(pages)], sorted([rng.uniform(0.1, 0.9) * seconds, *([together] if n % 5 == 0 else [])]))
            for n in range(count)
        ]
        self.begin, self.heard, self.ready = float("inf"), 0.0, 0
        self.read: dict[tuple[int, int], Message] = {}
        self.bytes = 0

    async def live(self, browser: Browser) -> None:
        """Connect, listen, come back after each cut; until cancelled."""
        while True:
            options = {"compression": None, "max_size": None, "ping_interval": None, "additional_headers": self.headers}
            async with connect(self.url, **options) as line:
                for topic, seq in browser.seqs.items():
                    uids = browser.shown if topic == "jobs" else None
                    await line.send(json.dumps({"op": "subscribe", "topic": topic, "uids": uids, "seq": seq}))
                try:
                    await self.listen(browser, line)
                except ConnectionClosed:
                    browser.lost += 1

    async def listen(self, browser: Browser, line: ClientConnection) -> None:
        """Note what comes. The line is cut, without a word to the server, when it is time."""
        new, first = dict.fromkeys(browser.seqs, True), browser.seqs["topology"] is None
        while True:
            raw = await line.recv(decode=False)
            now = self.heard = time.monotonic()
            message = self.parsed(raw)
            before, browser.seqs[message.topic] = browser.seqs[message.topic], message.seq
            browser.gaps += not new[message.topic] and message.seq != (before or 0) + 1
            new[message.topic] = False
            browser.got.append((now, message))
            if first and not any(new.values()):
                first = False
                self.ready += 1
            if browser.cuts and now - self.begin > browser.cuts[0]:
                browser.cuts.pop(0)
                line.transport.abort()

    def parsed(self, raw: bytes) -> Message:
        """A message; the same bytes are read once."""
        self.bytes += len(raw)
        key = (len(raw), hash(raw))
        if key not in self.read:
            told = orjson.loads(raw)
            self.read[key] = Message(told["topic"], told["type"], told["seq"], self.facts(told))
        return self.read[key]

    def facts(self, told: dict[str, Any]) -> list[tuple[int, int]]:
        if told["topic"] == "jobs":
            return [(self.place[row["uid"]], row["running"]) for row in told["changed"] if row["uid"] in self.place]
        return [
            (int(row["node"].removeprefix("n-")) * GPUS + gpu["index"], int(gpu["state"] == "allocated"))
            for row in told["changed"]
            for gpu in row["gpus"]
        ]


class Usage:
    """Processor time and memory of a process, by what the kernel says."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.begin = self.busy()
        self.memory: list[float] = []

    def busy(self) -> float:
        """Processor seconds until now."""
        with open(f"/proc/{self.pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def sample(self) -> None:
        """Note its memory, in MB."""
        with open(f"/proc/{self.pid}/statm") as file:
            self.memory.append(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pods", type=int, default=1000, help="that change in a second")
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.live_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        asyncio.run(run(server, options))
    finally:
        server.kill()


async def run(server: Any, options: argparse.Namespace) -> None:
    """Let the crowd in, have pods changed, compare."""
    said = json.loads(await asyncio.to_thread(server.stdout.readline))
    crowd = Crowd(f"ws://127.0.0.1:{said['port']}/ws/live/", said["token"], said["uids"], options.clients, options.seconds)
    tasks = []
    for browser in crowd.browsers:  # as people come: not all in the same instant
        tasks.append(asyncio.create_task(crowd.live(browser)))
        await asyncio.sleep(0.01)
    while crowd.ready < len(crowd.browsers):
        await asyncio.sleep(0.1)
    of_server, of_clients = Usage(server.pid), Usage(os.getpid())
    crowd.begin, crowd.bytes = time.monotonic(), 0
    server.stdin.write(json.dumps({"seconds": options.seconds, "pods": options.pods}) + "\n")
    server.stdin.flush()
    answer = asyncio.create_task(asyncio.to_thread(server.stdout.readline))
    while not answer.done():
        of_server.sample()
        await asyncio.wait({answer}, timeout=1.0)
    lasted = time.monotonic() - crowd.begin
    shares = [usage.busy() - usage.begin for usage in (of_server, of_clients)]
    sent = crowd.bytes
    end = time.monotonic() + PATIENCE
    while time.monotonic() - crowd.heard < QUIET and time.monotonic() < end:
        await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    report(crowd, json.loads(answer.result()), of_server.memory, [share / lasted for share in shares], sent / lasted, options)


def report(crowd: Crowd, truth: Any, memory: list[float], shares: list[float], rate: float, options: argparse.Namespace) -> None:
    """The table."""
    rows = []
    for topic, name in (("topology", "map of GPUs"), ("jobs", "job list")):
        delays = latencies(crowd, truth, topic)
        late = float(np.percentile(delays, 95))
        messages = sum(1 for b in crowd.browsers for at, m in b.got if m.topic == topic and at > crowd.begin)
        rows.append((f"{name}: changes told to clients", [f"{len(delays):,}", ""]))
        rows.append((f"{name}: change to message, median, s", [f"{np.percentile(delays, 50):.2f}", ""]))
        rows.append((f"{name}: change to message, p95, s", [f"{late:.2f}", yes(late <= AIM)]))
        rows.append((f"{name}: change to message, worst, s", [f"{delays.max():.2f}", ""]))
        rows.append((f"{name}: messages a second and client", [f"{messages / len(crowd.browsers) / truth['took']:.1f}", ""]))
    half = memory[len(memory) // 2 :] or [0.0]
    wrong = sum(is_wrong(browser, crowd, truth) for browser in crowd.browsers)
    lost = sum(browser.lost for browser in crowd.browsers)
    rows += [
        ("pods changed a second", [f"{len(truth['moves']) / truth['took']:,.0f}", ""]),
        (
            "server's memory, MB: first, half, end",
            [" ".join(f"{v:.0f}" for v in (memory[0], half[0], half[-1])), ""],
        ),
        ("  in its second half", [f"{half[-1] / half[0] - 1:+.1%}", yes(half[-1] <= half[0] * (1 + FLAT))]),
        ("lines cut", [f"{lost:,}", ""]),
        ("gaps between numbers", [f"{sum(b.gaps for b in crowd.browsers):,}", ""]),
        ("clients whose last state is not the truth", [f"{wrong:,}", yes(wrong == 0)]),
        ("processors: server, clients", [" ".join(f"{share:.2f}" for share in shares), ""]),
        ("sent, MB/s", [f"{rate / 1e6:.0f}", ""]),
    ]
    show(f"Live: {options.clients} clients, {options.pods:,} pods a second, {options.seconds:.0f} s", rows, ["", "reached"])


def yes(reached: bool) -> str:
    """In the table's words."""
    return "yes" if reached else "no"


def latencies(crowd: Crowd, truth: Any, topic: str) -> Any:
    """Seconds from each change that a delta shows to its arrival, over all clients.

    A job's count is the number of its change. A GPU's is the latest before the message that left it as the message says.
    """
    times = np.array([at for at, _ in truth["counts"]] or [0.0])
    moved: dict[tuple[int, int], list[float]] = {}
    for at, place, phase in truth["moves"]:
        moved.setdefault((place, phase), []).append(at)
    changed: dict[Message, Any] = {}
    seen: dict[int, set[tuple[int, float]]] = {}
    found = []
    for number, browser in enumerate(crowd.browsers):
        mine = seen.setdefault(number, set())
        for at, message in browser.got:
            if message.topic != topic or message.kind != "delta" or at < crowd.begin:
                continue
            if message not in changed:
                changed[message] = (
                    [(place, times[count - 1]) for place, count in message.facts if count]
                    if topic == "jobs"
                    else [(fact[0], t) for fact in message.facts if (t := latest(moved.get(fact, ()), at))]
                )
            new = [(place, t) for place, t in changed[message] if (place, t) not in mine]
            mine.update(new)
            found.append(at - np.array([t for _, t in new]))
    return np.concatenate(found)


def latest(times: Any, before: float) -> float:
    """The last of some instants, in order, that lies before another; 0 when none does."""
    return next((at for at in reversed(times) if at < before), 0.0)


def is_wrong(browser: Browser, crowd: Crowd, truth: Any) -> bool:
    """Whether what a client was told, all together, differs from how things are."""
    gpus: dict[int, int] = {}
    counts: dict[int, int] = {}
    for _, message in browser.got:
        (gpus if message.topic == "topology" else counts).update(message.facts)
    last = {number: place + 1 for place, (_, number) in enumerate(truth["counts"])}
    mine = [crowd.place[uid] for uid in browser.shown]
    is_map_right = all(gpus.get(place) == phase for place, phase in enumerate(truth["phases"]))
    return not is_map_right or any(counts.get(number, 0) != last.get(number, 0) for number in mine)


assert POD_PHASES.index("Running") == 1

if __name__ == "__main__":
    main()
