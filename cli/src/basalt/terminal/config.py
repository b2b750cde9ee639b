"""The configuration: contexts (a server, a user's token, a namespace) in one YAML file that only its user can read.

It is changed under a lock and put in place whole, so that neither Ctrl-C nor two commands at once leave half of it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import yaml

from basalt.terminal.exits import ConfigError

try:
    import fcntl
except ImportError:  # Windows: without the lock; the file is still put in place whole
    fcntl = None  # type: ignore[assignment]


@dataclass(slots=True)
class Context:
    """A server and who asks it. `ca` is a file of certificates, `expiry` the ISO instant at which the token ends."""

    server: str
    user: str = ""
    token: str = ""
    expiry: str = ""
    namespace: str = ""
    ca: str = ""


@dataclass(slots=True)
class Config:
    """All contexts, and the name of the one that is used unless another is named."""

    contexts: dict[str, Context] = field(default_factory=dict)
    current: str = ""

    def find(self, name: str, path: Path) -> Context:
        """The context of a name. Raises ConfigError that says which there are."""
        if name in self.contexts:
            return self.contexts[name]
        known = ", ".join(self.contexts) or "none yet"
        raise ConfigError(f"There is no context {name!r} in {path}; there are: {known}.", hint="Make one: basalt login ADDRESS")


def path() -> Path:
    """Where the configuration is: BASALT_CONFIG, else the XDG folder."""
    if named := os.environ.get("BASALT_CONFIG"):
        return Path(named).expanduser()
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "basalt" / "config.yaml"


def load() -> Config:
    """The configuration, empty where there is none. Raises ConfigError with the line or field at fault."""
    where = path()
    try:
        text = where.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where} cannot be read: {error}.") from error
    return _parsed(text, where)


def exposed() -> str:
    """A warning when others can read the file, else nothing."""
    with contextlib.suppress(OSError):
        if os.name == "posix" and path().stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return f"Others on this machine can read {path()}, which holds your tokens: chmod 600 {path()}"
    return ""


@contextlib.contextmanager
def changing() -> Iterator[Config]:
    """The configuration to be changed; it is written when the block ends well, and left alone when it does not."""
    where = path()
    try:
        where.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _lock(where):
            config = load()
            yield config
            _write(config, where.resolve())
    except OSError as error:
        raise ConfigError(
            f"{where} cannot be written: {error.strerror or error}.", hint="BASALT_CONFIG names another file."
        ) from error


@contextlib.contextmanager
def _lock(where: Path) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    descriptor = os.open(where.with_name(where.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(config: Config, where: Path) -> None:
    contexts = {
        name: {key: value for key, value in asdict(context).items() if value} for name, context in config.contexts.items()
    }
    text = yaml.safe_dump({"current": config.current, "contexts": contexts}, sort_keys=False, allow_unicode=True)
    descriptor, beside = tempfile.mkstemp(prefix=f".{where.name}.", dir=where.parent)  # readable for its user alone
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, where)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _parsed(text: str, where: Path) -> Config:
    mend = f"Mend it, or begin anew: rm {where}; basalt login ADDRESS"
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{where}{line} is not whole: {getattr(error, 'problem', None) or error}.", hint=mend) from None
    if found is None:
        return Config()
    if not isinstance(found, dict) or not isinstance(found.get("contexts", {}), dict):
        raise ConfigError(f"{where} is no configuration: it holds `current` and `contexts`.", hint=mend)
    contexts = {}
    for name, entry in (found.get("contexts") or {}).items():
        contexts[str(name)] = _context(name, entry, where, mend)
    return Config(contexts, str(found.get("current") or ""))


def _context(name: Any, entry: Any, where: Path, mend: str) -> Context:
    known = {"server", "user", "token", "expiry", "namespace", "ca"}
    if not isinstance(entry, dict) or not isinstance(entry.get("server"), str):
        raise ConfigError(f"{where}: context {name!r} names no server.", hint=mend)
    for key, value in entry.items():
        if key not in known:
            raise ConfigError(
                f"{where}: context {name!r} has an unknown entry {key!r}; there are {', '.join(sorted(known))}.", hint=mend
            )
        if not isinstance(value, str):
            raise ConfigError(f"{where}: {key!r} of context {name!r} must be text, not {value!r}.", hint=mend)
    return Context(**entry)
