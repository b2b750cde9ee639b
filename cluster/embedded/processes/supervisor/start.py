"""Starting a container: an init in namespaces of its own, and under it the program."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from typing import Any, NoReturn

from cluster.embedded.processes.supervisor import kernel, limits, rooms

Spec = dict[str, Any]
"""`command` (all words), `env`, `cwd`, `mounts`, `limits`, `user`, `group`, `groups`, `stopSignal`."""

START_ERROR = 128
_FORWARDED = (
    signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
)  # fmt: skip


def start(spec: Spec, group: limits.Group, room: dict[str, Any], pipes: dict[str, int]) -> int:
    """Fork the init of a container; its pid, 0 when it could not be forked. It writes to `pipes`: stdout, stderr, status.

    `room` says whether the pod has a mount namespace (`moved`), whether containers may have process ids of their own
    (`pids`), and by which descriptor it is seen that the supervisor has ended (`lifeline`).
    """
    ready, told = os.pipe()
    wait, go = os.pipe()
    middle = os.fork()
    if middle:
        os.close(told)
        os.close(wait)
        text = b""
        while chunk := os.read(ready, 64):
            text += chunk
        os.close(ready)
        os.waitpid(middle, 0)
        os.close(go)
        return int(text or b"0")
    try:
        os.close(ready)
        if room["pids"]:
            kernel.unshare(kernel.NEWPID)
        pid = os.fork()
        if pid:
            os.write(told, str(pid).encode())
            os._exit(0)
        os.close(told)
        os.close(go)
        os.read(wait, 1)  # until the one in the middle was buried: from then on the supervisor is the parent
        os.close(wait)
        kernel.die_with_parent(signal.SIGKILL)
        if select.select([room["lifeline"]], [], [], 0)[0]:
            os._exit(START_ERROR)  # the parent ended before it could be said to end with it
        _keep_only({*pipes.values(), room["lifeline"]})
        _init(spec, group, room, pipes)
    except BaseException as error:  # noqa: BLE001 - a forked child never returns into its parent's code
        _say(pipes["status"], f"error {START_ERROR} {error}")
        os._exit(START_ERROR)


def _init(spec: Spec, group: limits.Group, room: dict[str, Any], pipes: dict[str, int]) -> NoReturn:
    """The container's first process: it passes signals on, buries the dead, and tells how the program ended."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _FORWARDED)  # until there is somebody to pass them on to
    os.setsid()
    if room["moved"]:
        kernel.unshare(kernel.NEWNS)
        kernel.mount("", "/", flags=kernel.REC | kernel.PRIVATE)
        if room["pids"]:
            with contextlib.suppress(OSError):
                kernel.mount("proc", "/proc", "proc", kernel.NOSUID | kernel.NODEV | kernel.NOEXEC)
        rooms.mount_volumes(spec["mounts"], moved=True)
    if not room["pids"]:
        kernel.adopt_orphans()
    error_read, error_write = os.pipe()
    program = os.fork()
    if program == 0:
        os.close(error_read)
        _program(spec, group, room, pipes, error_write)
    os.close(error_write)
    for name in ("stdout", "stderr"):
        os.close(pipes[name])
    for number in _FORWARDED:
        signal.signal(number, lambda got, _: _pass_on(program, got))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)
    failure = b""
    while chunk := os.read(error_read, 4096):
        failure += chunk
    if not failure:
        _say(pipes["status"], "started\n")
    status = _bury(program)
    if not room["pids"]:
        _end_descendants()
    if failure:
        _say(pipes["status"], f"error {START_ERROR} {failure.decode(errors='replace')}")
    elif os.WIFSIGNALED(status):
        _say(pipes["status"], f"signal {os.WTERMSIG(status)}")
    else:
        _say(pipes["status"], f"exit {os.WEXITSTATUS(status)}")
    os._exit(0)


def _program(spec: Spec, group: limits.Group, room: dict[str, Any], pipes: dict[str, int], error: int) -> NoReturn:
    """Become the program; what stands in the way is told through `error`."""
    doing = ""
    try:
        os.setpgid(0, 0)
        group.enter()
        if room["moved"]:
            rooms.forget_machine()
            if os.path.isdir("/sys/fs/cgroup"):  # its own limits are not a container's to change
                with contextlib.suppress(OSError):
                    kernel.mount("tmpfs", "/sys/fs/cgroup", "tmpfs", kernel.RDONLY | kernel.NOSUID, "size=4k")
        limits.set_resources(spec["limits"], group.missing)
        null = os.open("/dev/null", os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(pipes["stdout"], 1)
        os.dup2(pipes["stderr"], 2)
        _become(spec)
        os.makedirs(spec["cwd"], exist_ok=True)
        os.chdir(spec["cwd"])
        for number in range(1, signal.NSIG):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.umask(0o022)
        os.set_inheritable(error, False)
        os.closerange(3, error)
        os.closerange(error + 1, 65_536)
        os.environ.clear()
        doing = spec["command"][0]
        os.execvpe(spec["command"][0], spec["command"], spec["env"])
    except BaseException as problem:  # noqa: BLE001 - as above
        where = doing or getattr(problem, "filename", None) or spec["cwd"]
        text = f"{where}: {problem.strerror}" if isinstance(problem, OSError) and problem.strerror else repr(problem)
        os.write(error, text.encode(errors="replace")[:4000])
    os._exit(START_ERROR)


def _become(spec: Spec) -> None:
    """The user and groups of the security context, where this user may choose."""
    if spec["user"] is None and spec["group"] is None and not spec["groups"]:
        return
    if os.geteuid() != 0:
        if spec["user"] not in (None, os.geteuid()):
            raise PermissionError(1, f"runAsUser {spec['user']} needs Basalt to run as root")
        return
    if not os.path.isdir(spec["cwd"]):
        os.makedirs(spec["cwd"])
    os.setgroups(spec["groups"])
    group = spec["group"] if spec["group"] is not None else 0
    os.setgid(group)
    if spec["user"] is not None:
        os.setuid(spec["user"])


def _pass_on(program: int, number: int) -> None:
    """A signal goes to the program's group, and to the program when it has left that."""
    with contextlib.suppress(OSError):
        if number == signal.SIGTERM or os.getpgid(program) == program:
            os.killpg(program, number)
            return
    with contextlib.suppress(OSError):
        os.kill(program, number)


def _bury(program: int) -> int:
    """Reap everybody until the program ends; its wait status."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == program:
            return status


def _end_descendants() -> None:
    """Without process ids of its own a container's leftovers are found one by one: they are this process's children."""
    while True:
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            children = [int(word) for word in file.read().split()]
        if not children:
            return
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(-1, 0)


def _keep_only(descriptors: set[int]) -> None:
    """Close what belongs to the supervisor and to other containers."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in descriptors:
            with contextlib.suppress(OSError):
                os.close(int(name))


def _say(pipe: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(pipe, text.encode(errors="replace"))


assert sys.platform == "linux", "the process runtime needs Linux"
