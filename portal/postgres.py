"""DATABASE_URL as Django wants it."""

from __future__ import annotations

from urllib.parse import parse_qsl, unquote, urlsplit


def database(url: str) -> dict[str, object]:
    """`postgresql://user:password@host:port/name?sslmode=…` as an entry of DATABASES; the query is libpq's.

    Raises ValueError, which says nothing of the address: there is a password in it.
    """
    parts = urlsplit(url)
    name = parts.path.strip("/")
    if parts.scheme not in ("postgresql", "postgres") or not name:
        raise ValueError("DATABASE_URL names no PostgreSQL database: write postgresql://user:password@host/name, or leave it out")
    try:
        port = parts.port
    except ValueError:
        raise ValueError("DATABASE_URL has a port that is none: write postgresql://user:password@host:5432/name") from None
    return {
        "ENGINE": "portal.postgres_backend",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,  # after a restart no request finds a connection that is none any more
    }
