"""How settings are read from the environment: what is unusable ends the start with one line, before any command could say it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from portal import postgres


def data_folder(usual: Path) -> Path:
    """The folder of databases and keys, made if it is missing."""
    folder = Path(os.environ.get("BASALT_DATA", usual))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # databases hold password hashes and Secrets
    except OSError as error:
        raise _unusable(folder, error) from None
    return folder


def _unusable(folder: Path, error: OSError) -> SystemExit:
    return SystemExit(f"The data folder {folder} cannot be used: {error.strerror}. Set BASALT_DATA to one that can be written.")


def listed(name: str, default: str) -> list[str]:
    """A setting of several words, by commas; spaces around them do not count."""
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


def whole(name: str, default: int, least: int = 1) -> int:
    """A setting that is a whole number, 1 or more unless `least` says otherwise."""
    text = os.environ.get(name, str(default))
    if not text.isdecimal() or int(text) < least:
        raise SystemExit(f"{name} is {'' if least else '0 or '}a whole number above 0, not {text!r}.")
    return int(text)


def one_of(name: str, usual: str, other: str) -> str:
    """A setting that is one of two words."""
    text = os.environ.get(name, usual)
    if text not in (usual, other):
        raise SystemExit(f"{name} is {usual} or {other}, not {text!r}.")
    return text


def switch(name: str) -> bool:
    """A setting that is on unless it says off."""
    return not os.environ.get(name) or one_of(name, "on", "off") == "on"


def secret_key(folder: Path, *, production: bool) -> str:
    """The key from the environment, or one made once and kept readable by its owner alone; in production none is made."""
    if (key := os.environ.get("BASALT_SECRET_KEY", "")) or production:
        return key  # empty: Django refuses as soon as anything is to be signed
    path = folder / "secret-key"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text()
    except OSError as error:
        raise _unusable(folder, error) from None
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(64))
    except OSError as error:
        path.unlink()  # an empty key would be taken for one the next time
        raise _unusable(folder, error) from None
    return path.read_text()


def database(folder: Path, name: str) -> dict[str, object]:
    """DATABASE_URL as Django's settings, or a SQLite file of its own."""
    url = os.environ.get("DATABASE_URL", "")
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": folder / f"{name}.sqlite3",
            "OPTIONS": {
                "timeout": 30,
                "transaction_mode": "IMMEDIATE",
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA cache_size=-64000;",
            },
            "TEST": {"NAME": folder / f"test-{name}.sqlite3", "DEPENDENCIES": []},
        }
    try:
        return postgres.database(url)
    except ValueError as error:
        raise SystemExit(f"{error}.") from None
