# SPDX-License-Identifier: Apache-2.0
"""Which processes hold given sockets: their descriptors, looked at in turns of workloads.

proc(5): the links in /proc/PID/fd are ``socket:[INODE]``.  Looking takes CAP_SYS_PTRACE.
"""

import errno
import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.descriptor_turns import DescriptorTurns
from seawall.host.host import JSON
from seawall.host.packet_rings.namespaces import Namespaces
from seawall.host.packet_rings.processes import process_row
from seawall.host.second_reader import read_halves

_HOLDERS_TOLD_MOST: Final = 16
"""Processes of one cgroup that hold one socket; forks share it by the hundred."""
_CLOCK_EVERY: Final = 256  # descriptors between two looks at the clock
_KNOWN_MOST: Final = 4096


class SocketHolders(NamedTuple):
    """What one look has found."""

    by_inode: dict[int, list[int]]
    """A socket -> the processes that hold it."""
    left_out: int
    """Processes not looked at."""
    untimely: list[int]
    """Of them, for which there was no time."""


class SocketSearch:
    """Looks for the holders of one kind of sockets; remembers what there was no time for."""

    def __init__(self) -> None:
        self._turns = DescriptorTurns()
        self._known: dict[tuple[int, int], int] = {}
        """Socket and process -> its descriptor, as it was found in an earlier look."""

    def find(self, wanted: dict[int, int], spaces: Namespaces, until: float) -> SocketHolders:
        """Who holds the sockets (inode -> namespace).

        Whoever made one was in its namespace: those processes are looked at first, and all others
        where that does not tell, or the namespace is the host's.
        """
        known = self._known_holders(wanted, spaces)
        apart = {space for space in wanted.values() if space != spaces.host}
        near = [pid for pid, space in spaces.by_pid.items() if space in apart]
        first = self._look(self._turns.order(near), wanted, spaces, until)
        rest = {inode for inode, space in wanted.items() if space not in apart}
        rest |= wanted.keys() - first.by_inode.keys()
        left_out, untimely = first.left_out, first.untimely
        if rest:
            seen = set(near)
            others = self._turns.order([pid for pid in spaces.by_pid if pid not in seen])
            second = self._look(others, rest, spaces, until)
            for inode, pids in second.by_inode.items():
                first.by_inode.setdefault(inode, []).extend(pids)
            left_out, untimely = left_out + second.left_out, second.untimely or untimely
        for inode, pids in known.items():  # in whose turn there was no time
            first.by_inode[inode] = list(dict.fromkeys([*first.by_inode.get(inode, ()), *pids]))
        return SocketHolders(first.by_inode, left_out, untimely)

    def _known_holders(self, wanted: dict[int, int], spaces: Namespaces) -> dict[int, list[int]]:
        """Of those of earlier looks, who holds the same socket by the same descriptor still."""
        found: dict[int, list[int]] = {}
        for (inode, pid), number in list(self._known.items()):
            with suppress(OSError):
                name = os.readlink(f"{spaces.folder(pid)}/fd/{number}") if inode in wanted else ""
                if pid in spaces.by_pid and name == f"socket:[{inode}]":
                    found.setdefault(inode, []).append(pid)
                    continue
            del self._known[inode, pid]
        return found

    def _look(
        self, pids: list[int], wanted: Iterable[int], spaces: Namespaces, until: float
    ) -> SocketHolders:
        names = {f"socket:[{inode}]": b"%d" % inode for inode in wanted}

        def held(pid: str) -> bytes:
            return self._held(int(pid), f"{spaces.folder(int(pid))}/fd/", names, until)

        found: dict[int, list[int]] = {}
        refused = 0
        done: set[int] = set()
        for pid, answer in zip(pids, read_halves([str(pid) for pid in pids], held), strict=False):
            if isinstance(answer, bytes):
                offset, *rows = answer.split()
                self._turns.note(pid, int(offset))
                if not int(offset):
                    done.add(pid)
                for row in rows:
                    inode, number = map(int, row.split(b":"))
                    found.setdefault(inode, []).append(pid)
                    if len(self._known) < _KNOWN_MOST:
                        self._known[inode, pid] = number
            elif answer != errno.ETIME:
                done.add(pid)
                refused += answer in (errno.EPERM, errno.EACCES)
        untimely = [pid for pid in pids if pid not in done]
        return SocketHolders(found, refused + len(untimely), untimely)

    def _held(self, pid: int, folder: str, names: dict[str, bytes], until: float) -> bytes:
        """Where to go on next time (0: all was looked at), and its sockets that are wanted with
        their descriptors; OSError, ETIME when the time is over.
        """
        if time.monotonic() > until:
            raise OSError(errno.ETIME, os.strerror(errno.ETIME))
        begin, held, goes_on_at = self._turns.offsets.get(pid, 0), {}, 0
        for done, (number, name) in enumerate(_links(folder, begin), 1):
            if name in names:
                held[names[name]] = number.encode()
            if not done % _CLOCK_EVERY and time.monotonic() > until:
                goes_on_at = begin + done
                break
        return b" ".join((b"%d" % goes_on_at, *(b"%b:%b" % row for row in held.items())))

    def told(self, holders: SocketHolders, spaces: Namespaces) -> dict[str, JSON]:
        """Each holder once, with what tells whose it is and whether it could have made a socket."""
        rows: dict[int, tuple[JSON, str]] = {}
        pairs: list[JSON] = []
        crowds: Counter[tuple[int, str]] = Counter()
        for inode, pids in holders.by_inode.items():
            for pid in pids:
                if pid not in rows:
                    with suppress(OSError, ValueError, IndexError):
                        row = process_row(pid, spaces)
                        rows[pid] = row, str(row[-1])
                if pid in rows and crowds[inode, rows[pid][1]] < _HOLDERS_TOLD_MOST:
                    crowds[inode, rows[pid][1]] += 1
                    pairs.append([inode, pid])
        return {
            "holders": pairs,
            "holders_left_out": holders.left_out,
            "crowds": self.crowds(holders),
            "processes": [row for row, _ in rows.values()],
        }

    def crowds(self, holders: SocketHolders) -> list[JSON]:
        """[cgroup, processes, descriptors] of those for which there was no time."""
        return [list(crowd) for crowd in self._turns.crowds(holders.untimely)]


def _links(folder: str, begin: int) -> Iterator[tuple[str, str]]:
    """Descriptors and what they are, from the ``begin``-th on."""
    for number in os.listdir(folder)[begin:]:
        name = ""
        with suppress(FileNotFoundError):
            name = os.readlink(folder + number)
        yield number, name
