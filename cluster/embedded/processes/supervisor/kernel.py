"""The system calls of Linux that Python does not offer: namespaces, mounts, and dying with one's parent."""

from __future__ import annotations

import ctypes
import os

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DETACH = 2
_PDEATHSIG, _NO_NEW_PRIVS, _CHILD_SUBREAPER = 1, 38, 36

_libc = ctypes.CDLL(None, use_errno=True)


def _checked(answer: int, what: str) -> None:
    if answer != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def die_with_parent(number: int) -> None:
    """Get this signal when the thread that started this process ends. Lost by a program that changes its user."""
    _checked(_libc.prctl(_PDEATHSIG, number, 0, 0, 0), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _checked(_libc.prctl(_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def unshare(flags: int) -> None:
    """Leave the shared namespaces. Raises OSError where the kernel does not allow it."""
    _checked(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2). Raises OSError, with the target in it."""
    raw = [text.encode() or None for text in (source, target, kind, data)]
    _checked(_libc.mount(raw[0], raw[1], raw[2], ctypes.c_ulong(flags), raw[3]), target)


def bind(source: str, target: str, *, read_only: bool = False, recursive: bool = True) -> None:
    """Show a file or folder at another place too."""
    mount(source, target, flags=BIND | (REC if recursive else 0))
    if not read_only:
        return
    for kept in (0, NOSUID | NODEV, NOSUID | NODEV | NOEXEC):  # in a user namespace these must stay as they were
        try:
            mount("", target, flags=REMOUNT | BIND | RDONLY | kept)
        except OSError:
            if kept & NOEXEC:
                raise
        else:
            return


def unmount(target: str) -> None:
    """Take a mount away, now or when its last user goes."""
    _checked(_libc.umount2(target.encode(), DETACH), target)


def pivot_root(new: str, old: str) -> None:
    """pivot_root(2), which the C library does not offer by name."""
    number = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine)
    if number is None:
        raise OSError(38, f"pivot_root is not known on {os.uname().machine}", new)
    _checked(_libc.syscall(number, new.encode(), old.encode()), new)


def set_host_name(name: str) -> None:
    """The host name of this process's UTS namespace."""
    raw = name.encode()
    _checked(_libc.sethostname(raw, len(raw)), "sethostname")


def start_of(pid: int) -> str:
    """When a process started, in ticks since boot, as text; empty when there is none. With its pid this names it for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def join(path: str) -> None:
    """Enter the namespace behind a file of /proc/<pid>/ns."""
    file = os.open(path, os.O_RDONLY)
    try:
        _checked(_libc.setns(file, 0), path)
    finally:
        os.close(file)
