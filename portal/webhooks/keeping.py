"""Keeping the certificates: made when they are missing, renewed before they end, in an order that no request fails in between.

Two Secrets: the authority's, which only this reads, and the server's, which the webhook process is given as files. First the
API server is told whom to trust, then the server gets a certificate of it. An authority that is replaced stays in the bundle
until it ends, with those before it, since servers may still show a certificate of theirs.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cluster.errors import AlreadyExists, Conflict, NotFound
from cluster.kinds import SECRET
from cluster.port import Cluster, Obj
from portal.crds.definitions import OURS
from portal.webhooks import certificates, install
from portal.webhooks.certificates import Pair

CERTIFICATE, KEY, AUTHORITY, FORMER = "tls.crt", "tls.key", "ca.crt", "former.crt"
TRIES = 5


@dataclass(frozen=True, slots=True)
class Names:
    """What is kept where; `hosts` are the names and addresses by which the API server calls the webhook process."""

    namespace: str
    hosts: Sequence[str]
    secret: str = "basalt-webhook"  # noqa: S105 - a name
    authority: str = "basalt-webhook-ca"
    days: int = certificates.SERVER_DAYS


@dataclass(slots=True)
class Kept:
    """What is in force, and what was done for it, in words."""

    server: Pair
    bundle: bytes
    done: list[str] = field(default_factory=list)


def keep(cluster: Cluster, names: Names, *, anew: bool = False, now: datetime | None = None) -> Kept:
    """Make or renew what has to be; with `anew` the server's certificate in any case. Raises ApiError, ValueError."""
    now = now or datetime.now(UTC)
    done: list[str] = []
    for left in range(TRIES - 1, -1, -1):
        try:
            authority, bundle = _authority(cluster, names, now, done)
            done += [f"{name}: trusts it" for name in install.set_bundle(cluster, b64encode(bundle).decode())]
            server = _server(cluster, names, authority, bundle, now, done, anew=anew)
        except (Conflict, AlreadyExists):  # somebody else keeps them too: read again what he wrote
            if not left:
                raise
            continue
        break
    return Kept(server, bundle, done)


def _authority(cluster: Cluster, names: Names, now: datetime, done: list[str]) -> tuple[Pair, bytes]:
    old = _secret(cluster, names, names.authority)
    pair, reason = None, "it was missing"
    if old is not None:
        pair, reason = _pair(old), ""
        try:
            ends_soon = pair.ends - now < max(timedelta(days=2 * names.days), timedelta(days=30))
            reason = "its end is near" if ends_soon else ""
            certificates.new_server(pair, ["probe"], now, 1)
        except (ValueError, TypeError) as error:
            pair, reason = None, f"it cannot be read: {error}"
    if pair is not None and not reason:
        return pair, _bundle(pair, _value(old, FORMER), now)
    former = _bundle(pair, _value(old, FORMER), now) if pair is not None else b""
    new = certificates.new_authority(now)
    _write(cluster, names, names.authority, old, {CERTIFICATE: new.certificate, KEY: new.key, FORMER: former})
    done.append(f"Secret {names.authority}: an authority was made, {reason}; it ends {new.ends:%Y-%m-%d}")
    return new, _bundle(new, former, now)


def _bundle(authority: Pair, former: bytes, now: datetime) -> bytes:
    try:
        older = certificates.still_valid(former, now) if former.strip() else []
    except ValueError:
        older = []
    return b"".join([authority.certificate, *older])


def _server(
    cluster: Cluster, names: Names, authority: Pair, bundle: bytes, now: datetime, done: list[str], *, anew: bool
) -> Pair:
    old = _secret(cluster, names, names.secret)
    reason = "it was missing"
    if old is not None:
        pair = _pair(old)
        reason = "it was asked for" if anew else certificates.wrong_with(pair, authority, names.hosts, now)
        if not reason:
            if _value(old, AUTHORITY) != bundle:
                _write(cluster, names, names.secret, old, {CERTIFICATE: pair.certificate, KEY: pair.key, AUTHORITY: bundle})
            return pair
    new = certificates.new_server(authority, names.hosts, now, names.days)
    _write(cluster, names, names.secret, old, {CERTIFICATE: new.certificate, KEY: new.key, AUTHORITY: bundle})
    done.append(f"Secret {names.secret}: a certificate was made, {reason}; it ends {new.ends:%Y-%m-%d}")
    return new


def _secret(cluster: Cluster, names: Names, name: str) -> Obj | None:
    try:
        return cluster.get(SECRET, name, names.namespace)
    except NotFound:
        return None


def _write(cluster: Cluster, names: Names, name: str, old: Obj | None, data: dict[str, bytes]) -> None:
    body: Obj = {
        "metadata": {"name": name, "namespace": names.namespace, "labels": {"app.kubernetes.io/managed-by": OURS}},
        "type": "kubernetes.io/tls",
        "data": {key: b64encode(value).decode() for key, value in data.items()},
    }
    if old is None:
        cluster.create(SECRET, body, field_manager=install.MANAGER)
        return
    body["type"] = old.get("type") or body["type"]  # which cannot change
    body["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    cluster.replace(SECRET, body, field_manager=install.MANAGER)


def _pair(secret: Obj) -> Pair:
    return Pair(_value(secret, CERTIFICATE), _value(secret, KEY))


def _value(secret: Obj | None, key: str) -> bytes:
    try:
        return b64decode(str(((secret or {}).get("data") or {}).get(key) or ""))
    except ValueError:
        return b""
