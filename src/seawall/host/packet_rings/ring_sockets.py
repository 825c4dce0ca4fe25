# SPDX-License-Identifier: Apache-2.0
"""Packet sockets of every network namespace, their rings, and the processes that hold them.

With the module af_packet_diag the kernel tells each ring; without it /proc/net/packet tells
which sockets there are.  Their holders are looked for only where that matters, beginning with
the processes of the same namespace.  Asked in the expendable child: it changes its namespace,
and the kernel may wait for a sender before it tells of a ring.
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
from seawall.host.packet_rings.diag import SOCKETS_MOST, DiagSocket, packet_sockets
from seawall.host.packet_rings.namespaces import Namespaces, in_each, network_namespaces
from seawall.host.packet_rings.processes import hidden, inhabitants, process_row
from seawall.host.second_reader import read_halves

_LOOK_SECONDS: Final = 0.4
"""At most, to find the namespaces; as much again to ask them, to find holders, to name them."""
_TRIVIAL_BYTES: Final = 1 << 20
_SOCKETS_TOLD_MOST: Final = 4096
_HOLDERS_TOLD_MOST: Final = 16
"""Processes of one cgroup that hold one socket; forks share it by the hundred."""
_CLOCK_EVERY: Final = 256  # descriptors between two looks at the clock
_KNOWN_MOST: Final = 4096
_PRESSED_PERCENT: Final = 5.0


class _Looked(NamedTuple):
    by_inode: dict[int, list[int]]
    """A socket -> the processes that hold it."""
    left_out: int
    """Processes not looked at."""
    untimely: list[int]
    """Of them, for which there was no time."""


_TURNS: Final = DescriptorTurns()
_KNOWN: Final[dict[tuple[int, int], int]] = {}
"""Socket and process -> its descriptor, as it was found in an earlier look."""


def packet_rings() -> JSON:
    """{"why_not", "host", "namespaces", "namespaces_left_out", "processes_left_out", "is_looked",
    "holders_left_out", "crowds": [[cgroup, processes, descriptors], ...],
    "others": [sockets, bytes], "holders": [[inode, pid], ...],
    "sockets": [[inode, namespace, uid, rx, tx], ...], "processes": [as of ``process_row``],
    "inhabitants": [as of ``inhabitants``], "hidden": [[cgroup lines], ...]}.

    ``is_looked``: whether holders were looked for; ``others``: smaller sockets not told;
    ``crowds``: of processes for which there was no time, whose they are;
    ``hidden``: cgroups of processes whose namespace may not be seen.
    """
    spaces = network_namespaces(time.monotonic() + _LOOK_SECONDS)
    asked = _ask(spaces, time.monotonic() + _LOOK_SECONDS)
    told, others = asked.sockets[:_SOCKETS_TOLD_MOST], asked.sockets[_SOCKETS_TOLD_MOST:]
    is_large = sum(map(_size, asked.sockets)) >= _TRIVIAL_BYTES
    is_asked = bool(told) and (bool(asked.why_not) or is_large)
    wanted = {one.inode: space for space, one in told}
    until = time.monotonic() + _LOOK_SECONDS
    holders = _holders(wanted, spaces, until) if is_asked else _Looked({}, 0, [])
    apart = set(wanted.values()) - {spaces.host} if is_asked else set()
    return {
        "why_not": asked.why_not,
        "host": spaces.host,
        "namespaces": asked.namespaces,
        "namespaces_left_out": asked.left_out,
        "processes_left_out": spaces.left_out + len(spaces.refusals),
        "others": [len(others), sum(map(_size, others))],
        "is_looked": is_asked,
        "sockets": [
            [one.inode, space, one.uid, _plain(one.rx), _plain(one.tx)] for space, one in told
        ],
        **_told_holders(holders, spaces),
        "inhabitants": inhabitants(apart, spaces, time.monotonic() + _LOOK_SECONDS),
        "hidden": hidden(spaces.refusals) if apart else [],
    }


class _Asked(NamedTuple):
    """What the kernel told: sockets with their namespaces, largest first."""

    sockets: list[tuple[int, DiagSocket]]
    namespaces: int
    left_out: int
    why_not: str
    """Rings are not told, only sockets; and what would help."""


def _ask(spaces: Namespaces, until: float) -> _Asked:
    why_not = why_not_asked()
    answers: dict[int, list[DiagSocket]] = {}
    left_out = 0
    if not why_not:
        try:
            answers, left_out = in_each(spaces, packet_sockets, until)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EINVAL, errno.EPROTONOSUPPORT):
                raise
            why_not = "the kernel has no af_packet_diag: modprobe af_packet_diag"
    if why_not:
        answers, left_out = in_each(spaces, _listed, until)
    # Where there are more than are listed, larger ones may be among the others.
    left_out += sum(len(sockets) >= SOCKETS_MOST for sockets in answers.values())
    found = [(space, one) for space, sockets in answers.items() for one in sockets]
    if not why_not:
        found = [pair for pair in found if _size(pair)]
    return _Asked(sorted(found, key=_size, reverse=True), len(answers), left_out, why_not)


def why_not_asked(
    modules: str = "/proc/modules", pressure: str = "/proc/pressure/memory"
) -> str:  # fmt: skip
    """Asking loads the module where it is not: not on a node that is short of memory."""
    try:
        with open(modules, "rb") as loaded:
            if any(line.startswith(b"af_packet_diag ") for line in loaded):
                return ""
    except FileNotFoundError:
        return ""  # a kernel without modules loads none
    with suppress(OSError, ValueError, IndexError), open(pressure, "rb") as file:
        full = file.read().split(b"full avg10=")[1]
        if float(full.split()[0]) >= _PRESSED_PERCENT:
            return (
                "af_packet_diag is not loaded, and is not while the node is short of memory:"
                " modprobe af_packet_diag"
            )
    return ""


def _listed() -> list[DiagSocket]:
    """Of /proc/net/packet: which sockets there are, not what rings they have."""
    found = []
    with open("/proc/thread-self/net/packet", "rb") as table:
        for line in list(table)[1:]:
            words = line.split()
            if len(words) >= 9 and words[8].isdigit() and words[7].isdigit():
                found.append(DiagSocket(int(words[8]), int(words[7]), None, None))
    return found


def _size(found: tuple[int, DiagSocket]) -> int:
    return sum(ring[0] * ring[1] for ring in (found[1].rx, found[1].tx) if ring)


def _plain(ring: tuple[int, int] | None) -> JSON:
    return list(ring) if ring else None


# --- who holds them ---------------------------------------------------------------------


def _holders(wanted: dict[int, int], spaces: Namespaces, until: float) -> _Looked:
    """Who holds the sockets (inode -> namespace).

    Whoever made one was in its namespace: those processes are looked at first, and all others
    where that does not tell, or the namespace is the host's.
    """
    known = _known_holders(wanted, spaces)
    apart = {space for space in wanted.values() if space != spaces.host}
    near = [pid for pid, space in spaces.by_pid.items() if space in apart]
    first = _look(_TURNS.order(near), wanted, spaces, until)
    rest = {inode for inode, space in wanted.items() if space not in apart}
    rest |= wanted.keys() - first.by_inode.keys()
    left_out, untimely = first.left_out, first.untimely
    if rest:
        seen = set(near)
        others = _TURNS.order([pid for pid in spaces.by_pid if pid not in seen])
        second = _look(others, rest, spaces, until)
        for inode, pids in second.by_inode.items():
            first.by_inode.setdefault(inode, []).extend(pids)
        left_out, untimely = left_out + second.left_out, second.untimely or untimely
    for inode, pids in known.items():  # in whose turn there was no time
        first.by_inode[inode] = list(dict.fromkeys([*first.by_inode.get(inode, ()), *pids]))
    return _Looked(first.by_inode, left_out, untimely)


def _known_holders(wanted: dict[int, int], spaces: Namespaces) -> dict[int, list[int]]:
    """Of those of earlier looks, who holds the same socket by the same descriptor still."""
    found: dict[int, list[int]] = {}
    for (inode, pid), number in list(_KNOWN.items()):
        with suppress(OSError):
            name = os.readlink(f"{spaces.folder(pid)}/fd/{number}") if inode in wanted else ""
            if pid in spaces.by_pid and name == f"socket:[{inode}]":
                found.setdefault(inode, []).append(pid)
                continue
        del _KNOWN[inode, pid]
    return found


def _look(
    pids: list[int], wanted: Iterable[int], spaces: Namespaces, until: float
) -> _Looked:  # fmt: skip
    names = {f"socket:[{inode}]": b"%d" % inode for inode in wanted}

    def held(pid: str) -> bytes:
        return _held(int(pid), f"{spaces.folder(int(pid))}/fd/", names, until)

    found: dict[int, list[int]] = {}
    refused = 0
    done: set[int] = set()
    for pid, answer in zip(pids, read_halves([str(pid) for pid in pids], held), strict=False):
        if isinstance(answer, bytes):
            offset, *rows = answer.split()
            _TURNS.note(pid, int(offset))
            if not int(offset):
                done.add(pid)
            for row in rows:
                inode, number = map(int, row.split(b":"))
                found.setdefault(inode, []).append(pid)
                if len(_KNOWN) < _KNOWN_MOST:
                    _KNOWN[inode, pid] = number
        elif answer != errno.ETIME:
            done.add(pid)
            refused += answer in (errno.EPERM, errno.EACCES)
    untimely = [pid for pid in pids if pid not in done]
    return _Looked(found, refused + len(untimely), untimely)


def _held(pid: int, folder: str, names: dict[str, bytes], until: float) -> bytes:
    """Where to go on next time (0: all was looked at), and its sockets that are wanted with their
    descriptors; OSError, ETIME when the time is over.
    """
    if time.monotonic() > until:
        raise OSError(errno.ETIME, os.strerror(errno.ETIME))
    begin, held, goes_on_at = _TURNS.offsets.get(pid, 0), {}, 0
    for done, (number, name) in enumerate(_links(folder, begin), 1):
        if name in names:
            held[names[name]] = number.encode()
        if not done % _CLOCK_EVERY and time.monotonic() > until:
            goes_on_at = begin + done
            break
    return b" ".join((b"%d" % goes_on_at, *(b"%b:%b" % row for row in held.items())))


def _links(folder: str, begin: int) -> Iterator[tuple[str, str]]:
    """Descriptors and what they are, from the ``begin``-th on."""
    for number in os.listdir(folder)[begin:]:
        name = ""
        with suppress(FileNotFoundError):
            name = os.readlink(folder + number)
        yield number, name


def _told_holders(holders: _Looked, spaces: Namespaces) -> dict[str, JSON]:
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
        "crowds": [list(crowd) for crowd in _TURNS.crowds(holders.untimely)],
        "processes": [row for row, _ in rows.values()],
    }
