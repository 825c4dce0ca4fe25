# SPDX-License-Identifier: Apache-2.0
"""Who else kills on this machine: earlyoom, oomd, systemd-oomd, nohang, a kubelet's eviction.

A container may call its process earlyoom: only processes of the pid namespace that /proc shows
count (``NSpid`` of /proc/PID/status, since 4.1, one number: in no namespace below it), and of
those inside the scope it is said where they are.
"""

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from seawall.guard.tell.plain import plain

GUARDS: Final = frozenset({"earlyoom", "oomd", "systemd-oomd", "nohang"})
KUBELETS: Final = frozenset({"kubelet", "k3s", "k3s-server", "k3s-agent", "k0s"})
READABLE: Final = frozenset({"kubelet"})
DEFAULT_CONFIG: Final = "/var/lib/kubelet/config.yaml"
DEFAULT_EVICTION: Final = "100Mi"
_MOST: Final = 8
_FILE_MOST: Final = 256 << 10
_QUANTITY: Final = r"([0-9.]+(?:%|[KMGTPE]i?)?)"
_IN_FLAG: Final = re.compile(rf"memory\.available\s*<\s*{_QUANTITY}")
_IN_FILE: Final = re.compile(rf"""memory\.available["']?\s*:\s*["']?{_QUANTITY}""")
_HARD: Final = re.compile(r"""evictionHard["']?[ \t]*:\s*(\{[^}]*\}|(?:\n?[ \t]+[^\n]+)+)""")


class Process(NamedTuple):
    """One that is of the host."""

    pid: int
    comm: str
    is_in_scope: bool


def find(proc: str, scope: Sequence[str]) -> list[str]:
    """Each in words, at most eight."""
    words = []
    for process in host_processes(proc, GUARDS | KUBELETS, scope):
        if process.comm in GUARDS:
            where = ", in a container" if process.is_in_scope else ""
            words.append(f"{process.comm} (pid {process.pid}{where}) kills on its own")
        elif not process.is_in_scope:
            words.append(_eviction(proc, process))
    return words[:_MOST]


def host_processes(proc: str, names: frozenset[str], scope: Sequence[str]) -> Iterator[Process]:
    """Living ones with one of these names in the pid namespace of ``proc``."""
    for entry in sorted(os.listdir(proc), key=lambda name: (len(name), name)):
        if not entry.isdigit():
            continue
        comm = _read(f"{proc}/{entry}/comm", 64).strip()
        if comm not in names or _is_dead(_read(f"{proc}/{entry}/stat", 4096)):
            continue
        if not _is_of_host(_read(f"{proc}/{entry}/status", 8192)):
            continue
        paths = _read(f"{proc}/{entry}/cgroup", 65536)
        yield Process(int(entry), comm, _is_within(paths, scope))


def eviction_of(arguments: list[str], config: str) -> str:
    """The kubelet's evictionHard for memory.available: flag, else file, else its default;
    empty when it has one without memory.
    """
    for number, word in enumerate(arguments):
        name, _, value = word.lstrip("-").partition("=")
        if name == "eviction-hard":
            value = value or "".join(arguments[number + 1 : number + 2])
            found = _IN_FLAG.search(value)
            return found[1] if found else ""
    hard = _HARD.search(config)
    if hard is None:
        return DEFAULT_EVICTION
    found = _IN_FILE.search(hard[1])
    return found[1] if found else ""


def _eviction(proc: str, kubelet: Process) -> str:
    who = f"{kubelet.comm} (pid {kubelet.pid})"
    if kubelet.comm not in READABLE:
        return f"{who} has a kubelet in it, whose eviction threshold is not to be seen"
    arguments = _read(f"{proc}/{kubelet.pid}/cmdline", _FILE_MOST).split("\0")
    path = DEFAULT_CONFIG
    for number, word in enumerate(arguments):
        name, _, value = word.lstrip("-").partition("=")
        if name == "config":
            path = value or "".join(arguments[number + 1 : number + 2])
    text = _read(f"{proc}/{kubelet.pid}/root{path}", _FILE_MOST) if path[:1] == "/" else ""
    below = eviction_of(arguments, text)
    if not below:
        return f"{who} evicts nothing for memory"
    return plain(f"{who} evicts below memory.available {below}", 120)


def _is_within(paths: str, scope: Sequence[str]) -> bool:
    """A scope of all says nothing about who is a container's."""
    tops = [top.rstrip("/") for top in scope if top.rstrip("/")]
    for line in paths.splitlines():
        path = line.rpartition(":")[2] + "/"
        if any(path.startswith(top + "/") for top in tops):
            return True
    return False


def _is_of_host(status: str) -> bool:
    """A kernel without pid namespaces has no such line."""
    line = next((row for row in status.splitlines() if row.startswith("NSpid:")), "")
    return bool(status) and len(line.split()) <= 2


def _is_dead(stat: str) -> bool:
    return stat.rpartition(")")[2].strip()[:1] in ("Z", "X", "x", "")


def _read(path: str, most: int) -> str:
    """Empty when it cannot be read: gone, or refused."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(fd, most).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)
