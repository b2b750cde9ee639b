"""The work queue shared by many processes, in Redis: the same promises as `workqueue`, and none lost when a worker dies.

`wanted` holds keys with the time at which they fall due, `leases` those that are being worked with the time until which their
worker has them. A worker renews its leases; when it dies they run out, and its keys are wanted again. All of it in Redis's own
time, each step one script, so that it is done whole or not at all. A worker that was only held up writes nothing once its lease
may have run out (`crew`); what was on its way then does no harm: every pass is idempotent, and its status write is refused.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

import redis

from cluster.rests import Rests
from jobs.controller.base import Refusals
from jobs.controller.roster import Key
from jobs.controller.workqueue import FIRST_DELAY, LONGEST_DELAY

LEASE_SECONDS = 15.0
HOST = socket.gethostname()

_NOW = "local t = redis.call('TIME'); local now = t[1] * 1000 + math.floor(t[2] / 1000); "

_SEE = """
for i = 1, #versions, 2 do
  local was = redis.call('HGET', seen, versions[i])
  if not was or tonumber(was) < tonumber(versions[i + 1]) then redis.call('HSET', seen, versions[i], versions[i + 1]) end
end
if #versions > 0 then redis.call('PEXPIRE', seen, 300000) end
"""
"""Keep, by kind, the newest versions that whoever works a key next must have seen."""

_ADD = (
    _NOW
    + "local seen = KEYS[2]; local versions = {unpack(ARGV, 3)}; "
    + _SEE
    + """
local due = now + ARGV[2]
local was = redis.call('ZSCORE', KEYS[1], ARGV[1])
if was and tonumber(was) <= due then return 0 end
redis.call('ZADD', KEYS[1], due, ARGV[1])
return 1
"""
)

_TAKE = (
    _NOW
    + """
local from = 0
while true do
  local found = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', from, 50)
  if #found == 0 then return false end
  for _, key in ipairs(found) do
    if not redis.call('ZSCORE', KEYS[2], key) then
      redis.call('ZREM', KEYS[1], key)
      redis.call('ZADD', KEYS[2], now + ARGV[2], key)
      redis.call('HSET', KEYS[3], key, ARGV[1])
      return key
    end
  end
  from = from + #found
end
"""
)

_RENEW = (
    _NOW
    + """
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
return 1
"""
)

_DONE = (
    "local seen = KEYS[4]; local versions = {unpack(ARGV, 3)}; "
    + _SEE
    + """
if redis.call('HGET', KEYS[3], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('HDEL', KEYS[3], ARGV[1])
return 1
"""
)

_REAP = (
    _NOW
    + """
local found = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
for _, key in ipairs(found) do
  redis.call('ZREM', KEYS[2], key)
  redis.call('HDEL', KEYS[3], key)
  redis.call('ZADD', KEYS[1], 'LT', now, key)
end
return #found
"""
)

_DUE = _NOW + "return redis.call('ZCOUNT', KEYS[1], '-inf', now)"

_LEAD = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

_RESIGN = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


@dataclass(frozen=True, slots=True)
class Lease:
    """A key that one worker has for itself, and how new its local copy must be: versions by kind."""

    key: Key
    token: str
    versions: dict[str, int] = field(default_factory=dict)


class SharedQueue:
    """Keys that wait for a worker of any process. Raises `redis.RedisError` when Redis does not answer."""

    def __init__(
        self,
        connection: redis.Redis,
        *,
        name: str = "basalt:work",
        lease_seconds: float = LEASE_SECONDS,
        rest: float = 0.0,
    ) -> None:
        self._redis, self._name, self.lease_seconds = connection, name, lease_seconds
        self._sets = [f"{name}:{part}" for part in ("wanted", "leases", "tokens")]
        script = connection.register_script
        self._add, self._take, self._renew, self._done = script(_ADD), script(_TAKE), script(_RENEW), script(_DONE)
        self._reap, self._due, self._lead, self._resign = script(_REAP), script(_DUE), script(_LEAD), script(_RESIGN)
        self.refusals = SharedRefusals(connection, f"{name}:refusals")
        self.rests = SharedRests(connection, f"{name}:rests", rest)

    def add(self, key: Key, versions: Mapping[str, int] | None = None) -> bool:
        """Ask for a key as soon as possible; whether nobody had asked for it yet.

        `versions`, by kind: who works it must have seen as much. Else it might look before its copy shows why it was asked for.
        """
        return self.add_after(key, 0.0, versions)

    def add_after(self, key: Key, seconds: float, versions: Mapping[str, int] | None = None) -> bool:
        """Ask for a key in so many wall seconds; the earliest of several such requests holds."""
        told = [word for pair in (versions or {}).items() for word in pair]
        return bool(self._add(keys=[self._sets[0], self._seen(key)], args=[_text(key), int(max(seconds, 0.0) * 1000), *told]))

    def take(self) -> Lease | None:
        """The key that has been due longest and that nobody works; None when there is none."""
        token = f"{HOST}:{os.getpid()}/{uuid.uuid4().hex}"  # says to people whose it is
        found = self._take(keys=self._sets, args=[token, int(self.lease_seconds * 1000)])
        if not found:
            return None
        key = _key(found.decode())
        versions = self._redis.hgetall(self._seen(key))
        return Lease(key, token, {kind.decode(): int(version) for kind, version in versions.items()})

    def renew(self, lease: Lease) -> bool:
        """Keep a key for longer; False when it was given to somebody else."""
        return bool(self._renew(keys=self._sets, args=[_text(lease.key), lease.token, int(self.lease_seconds * 1000)]))

    def done(self, lease: Lease, versions: dict[str, int]) -> None:
        """Give a key back; `versions` are what the next worker must have seen before it begins."""
        told = [word for pair in versions.items() for word in pair]
        self._done(keys=[*self._sets, self._seen(lease.key)], args=[_text(lease.key), lease.token, *told])

    def retry(self, key: Key) -> int:
        """Ask for a key that failed, after a delay that doubles each time; how often it has failed now."""
        failures = int(self._redis.hincrby(f"{self._name}:failures", _text(key), 1))
        self.add_after(key, min(FIRST_DELAY * 2.0 ** min(failures - 1, 60), LONGEST_DELAY))
        return failures

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._redis.hdel(f"{self._name}:failures", _text(key))

    def reap(self) -> int:
        """Want again what workers had that are dead; how many keys."""
        return int(self._reap(keys=self._sets))

    def due(self) -> int:
        """How many keys could be worked now, if nobody worked them."""
        return int(self._due(keys=self._sets[:1]))

    def lead(self, name: str, seconds: float) -> bool:
        """Be, or go on being, the one who asks for keys; False while another is."""
        return bool(self._lead(keys=[f"{self._name}:leader"], args=[name, int(seconds * 1000)]))

    def resign(self, name: str) -> None:
        """Let another lead at once."""
        self._resign(keys=[f"{self._name}:leader"], args=[name])

    def is_fresh(self) -> bool:
        """Whether Redis has forgotten everything since this was last asked, as it does when it begins without its data."""
        return bool(self._redis.set(f"{self._name}:alive", 1, nx=True))

    def _seen(self, key: Key) -> str:
        return f"{self._name}:versions:{_text(key)}"


class SharedRefusals(Refusals):
    """Counted where every process sees them."""

    def __init__(self, connection: redis.Redis, name: str) -> None:
        super().__init__()
        self._redis, self._name = connection, name

    def add(self, key: str) -> None:
        """One more."""
        self._redis.hincrby(self._name, key, 1)

    def of(self, key: str) -> int:
        """How many there were."""
        return int(self._redis.hget(self._name, key) or 0)

    def clear(self, key: str) -> None:
        """It went well, or is no more."""
        self._redis.hdel(self._name, key)


class SharedRests(Rests):
    """Pauses that hold for every process: whoever has the key when one is over writes."""

    def __init__(self, connection: redis.Redis, name: str, seconds: float) -> None:
        super().__init__(seconds)
        self._redis, self._name = connection, name

    def left(self, key: str, now: float) -> float:
        """Seconds that a write that only counts has still to wait."""
        if not self._seconds:
            return 0.0
        self._redis.hsetnx(self._name, key, now + self._seconds)
        return max(float(self._redis.hget(self._name, key) or now) - now, 0.0)

    def written(self, key: str) -> None:
        """Nothing waits any more."""
        if self._seconds:
            self._redis.hdel(self._name, key)


def _text(key: Key) -> str:
    return " ".join(key)


def _key(text: str) -> Key:
    controller, _, item = text.partition(" ")
    return controller, item
