"""What a pod sees of the machine: its own root over the machine's, its own /tmp, /run, /dev/shm and /etc/hosts."""

from __future__ import annotations

import contextlib
import glob
import os
from typing import Any

from cluster.embedded.processes.supervisor import kernel

Plan = dict[str, Any]

_LEFT_ALONE = ("/proc", "/sys", "/dev", "/run", "/tmp", "/var/run")
_DEVICES = (
    "null", "zero", "full", "random", "urandom", "tty", "pts", "fuse", "net", "nvidia*", "dri", "kfd", "infiniband", "accel",
    "davinci*",
)  # fmt: skip
_SHOWN_OF_RUN = ("/run/systemd/resolve", "/run/nvidia-persistenced", "/run/resolvconf")


def enter(plan: Plan) -> str:
    """Give this process the pod's own view; the empty text, or why it has to share the machine's.

    `plan["folder"]` is the pod's folder, `plan["hidden"]` what no pod may see, `plan["host"]` its host name.
    """
    try:
        _leave(plan["host"])
        root = _root(plan["folder"])
        _fill(root, plan["folder"])
        for path in plan["hidden"]:
            if os.path.isdir(root + path):
                kernel.mount("tmpfs", root + path, "tmpfs", kernel.NOSUID | kernel.NODEV, "size=4k,mode=755")
        _change_root(root)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _leave(host: str) -> None:
    """Namespaces of one's own: mounts, host name, System V memory. Who is not root becomes root in a user namespace."""
    flags = kernel.NEWNS | kernel.NEWUTS | kernel.NEWIPC
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        kernel.unshare(flags)
    else:
        kernel.unshare(flags | kernel.NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)
    kernel.set_host_name(host[:63])


def _root(folder: str) -> str:
    """A layer over the machine's root: what the pod writes stays in its folder, and goes with it."""
    root = f"{folder}/root"
    os.makedirs(root, exist_ok=True)
    try:
        _layered("/", root, folder, "layer")
    except OSError:  # in a user namespace the whole root cannot be taken as one
        _patch_together(root, folder)
        return root
    for number, place in enumerate(_other_file_systems(folder)):
        with contextlib.suppress(OSError):
            _layered(place, root + place, folder, f"layer-{number}")
    return root


def _patch_together(root: str, folder: str) -> None:
    """A root of its own, with each folder of the machine's top in it: layered where that can be, else as it is."""
    kernel.mount("tmpfs", root, "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=755,size=64m")
    for entry in sorted(os.scandir("/"), key=lambda entry: entry.name):
        target = root + entry.path
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), target)
        elif not entry.is_dir():
            open(target, "w").close()
            kernel.bind(entry.path, target)
        else:
            os.mkdir(target)
            if entry.path not in _LEFT_ALONE:
                _show(entry.path, target, folder)


def _show(place: str, target: str, folder: str) -> None:
    try:
        _layered(place, target, folder, f"layer-of{place.replace('/', '-')}")
    except OSError:
        with contextlib.suppress(OSError):  # what this user may not see at all stays an empty folder
            kernel.bind(place, target)


def _layered(place: str, target: str, folder: str, name: str) -> None:
    """A layer over a place, in the pod's folder; where that file system cannot hold one (in a container, say), in memory."""
    try:
        _overlay(place, target, f"{folder}/{name}")
    except OSError:
        memory = f"{folder}/memory-{name}"
        os.makedirs(memory, exist_ok=True)
        kernel.mount("tmpfs", memory, "tmpfs", kernel.NODEV, "mode=755")
        try:
            _overlay(place, target, memory)
        except OSError:
            kernel.unmount(memory)
            raise


def _overlay(lower: str, target: str, layer: str) -> None:
    for part in ("upper", "work"):
        os.makedirs(f"{layer}/{part}", exist_ok=True)
    os.chmod(f"{layer}/upper", 0o755)
    extra = ",userxattr" if os.geteuid() != 0 or _mapped() else ""
    kernel.mount("overlay", target, "overlay", 0, f"lowerdir={lower},upperdir={layer}/upper,workdir={layer}/work{extra}")


def _mapped() -> bool:
    with open("/proc/self/uid_map") as file:
        return file.read().split()[2] != "4294967295"


def _other_file_systems(folder: str) -> list[str]:
    """Where other disks are mounted, outermost first."""
    found: list[str] = []
    with open("/proc/self/mountinfo") as file:
        for line in file:
            left, _, right = line.partition(" - ")
            place = left.split()[4].replace("\\040", " ")
            kind = right.split()[0]
            inner = any(place == top or place.startswith(f"{top}/") for top in _LEFT_ALONE)
            if place != "/" and not inner and not place.startswith(folder) and kind not in ("overlay", "tmpfs", "proc", "sysfs"):
                found.append(place)
    return sorted(set(found), key=lambda place: place.count("/"))


def _fill(root: str, folder: str) -> None:
    """What is not a disk: devices, kernel files, and folders that no two pods share."""
    _devices(f"{root}/dev")
    kernel.bind("/sys", f"{root}/sys")
    kernel.bind("/proc", f"{root}/proc")
    kernel.mount("tmpfs", f"{root}/run", "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=755,size=64m")
    for shown in _SHOWN_OF_RUN:
        if os.path.isdir(shown):
            os.makedirs(root + shown, exist_ok=True)
            kernel.bind(shown, root + shown, read_only=True)
    os.makedirs(f"{root}/run/lock", exist_ok=True)
    os.makedirs(f"{folder}/tmp", exist_ok=True)
    os.chmod(f"{folder}/tmp", 0o1777)
    kernel.bind(f"{folder}/tmp", f"{root}/tmp")
    hosts = f"{root}/etc/hosts"
    if not os.path.exists(hosts):
        open(hosts, "w").close()
    kernel.bind(f"{folder}/hosts", hosts)


def _devices(place: str) -> None:
    """The harmless devices of every machine, and accelerators and networks as far as there are any."""
    kernel.mount("tmpfs", place, "tmpfs", kernel.NOSUID, "mode=755,size=1m")
    for pattern in _DEVICES:
        for path in glob.glob(f"/dev/{pattern}"):
            target = place + path.removeprefix("/dev")
            if os.path.isdir(path):
                os.mkdir(target)
            else:
                open(target, "w").close()
            kernel.bind(path, target)
    links = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
    for link, target in links.items():
        os.symlink(target, f"{place}/{link}")
    os.mkdir(f"{place}/shm")
    kernel.mount("tmpfs", f"{place}/shm", "tmpfs", kernel.NOSUID | kernel.NODEV, "mode=1777")


def _change_root(root: str) -> None:
    """Make it the root, and let go of the old one."""
    old = f"{root}/run/.old"
    os.mkdir(old)
    os.chdir(root)
    kernel.pivot_root(".", "run/.old")
    os.chdir("/")


def forget_machine() -> None:
    """Take the machine's own root out of sight, once a container's volumes are mounted from it."""
    with contextlib.suppress(OSError):
        kernel.unmount("/run/.old")


OLD = "/run/.old"
"""Where the machine's own root is seen until `forget_machine`."""


def mount_volumes(mounts: list[dict[str, Any]], *, moved: bool) -> None:
    """Mount a container's volumes, outer before inner ones. Raises OSError that names the place.

    `moved` says that the root was changed, so that sources are seen below OLD.
    """
    for entry in sorted(mounts, key=lambda entry: str(entry["path"]).count("/")):
        source, target = (OLD if moved else "") + entry["source"], entry["path"]
        if os.path.isdir(source):
            os.makedirs(target, exist_ok=True)
        elif not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "w").close()
        kernel.bind(source, target, read_only=entry["readOnly"])
