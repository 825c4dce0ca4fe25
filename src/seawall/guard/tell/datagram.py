# SPDX-License-Identifier: Apache-2.0
"""One UDP datagram at a trigger: evidence that outlives the machine.

The socket is made at the start and the name resolved by a child with a deadline.  It is not
connected: the guard starts before the network, and addresses and routes come and go.  Most of the
text is made in peace; at the trigger the decision is put behind it and it goes out without
waiting.  At most 1,400 bytes, so no router has to divide it.
"""

import errno
import os
import select
import signal
import socket
from typing import Any, Final

from seawall.guard.tell.guard_sentences import DATAGRAM_WAITS
from seawall.guard.tell.plain import line_of, plain
from seawall.guard.tick_facts import Group, Node

SCHEMA: Final = "seawall.datagram/1"
MOST_BYTES: Final = 1400
_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_RESOLVE_SECONDS: Final = 5.0
_HEAD_MOST: Final = 900
_SENTENCES: Final = (400, 250, 120, 40)


class Datagram:
    """``send`` never raises and never waits."""

    __slots__ = ("_address", "_head", "_is_way_known", "_socket", "problem", "sent", "to")

    def __init__(self, to: str) -> None:
        self.to = to
        """``HOST:PORT`` or ``[IPv6]:PORT``; empty: none is sent."""
        self.problem = ""
        self.sent = 0
        self._head: bytes = b""
        self._address = ("", 0)
        self._socket: socket.socket | None = None
        self._is_way_known = False

    def open(self) -> None:
        """Before memory is locked: it forks once for a host that is not a number."""
        if not self.to:
            return
        try:
            host, port = split_address(self.to)
            family, number = resolve_host(host, _RESOLVE_SECONDS)
            self._socket = socket.socket(family, _KIND)
            self._address = (number, port)
        except (OSError, ValueError) as error:
            self.problem = f"datagram_to {plain(self.to, 80)}: {plain(str(error), 100)}"
            return
        self._look_for_way()

    def change(self, to: str) -> None:
        """After a reload.  A name is resolved by a child, which only a start may have: another
        address waits for that, and to the old one nothing goes any more.
        """
        if to != self.to or self.problem == DATAGRAM_WAITS:
            self.close()
            self.to, self.problem = "", DATAGRAM_WAITS if to else ""

    def prepare(self, facts: dict[str, Any]) -> None:
        """The part that is known before anything is decided (``facts_of``)."""
        if self._socket is None:
            return
        if not self._is_way_known:
            self._look_for_way()
        head = line_of({"schema": SCHEMA, **facts})
        while len(head) > _HEAD_MOST and facts.get("top"):
            facts["top"].pop()
            head = line_of({"schema": SCHEMA, **facts})
        self._head = head if len(head) <= _HEAD_MOST else b""

    def send(self, decision: dict[str, Any]) -> bool:
        """The prepared part and ``decision``, whose ``sentence`` is cut as far as needed."""
        if self._socket is None or not self._head:
            return False
        sentence = str(decision.get("sentence", ""))
        for most in _SENTENCES:
            text = line_of({**decision, "sentence": plain(sentence, most)})[:-1]
            whole = b'%s,"decision":%s}' % (self._head[:-2], text)
            if len(whole) <= MOST_BYTES:
                return self._out(self._socket, whole)
        return False

    def close(self) -> None:
        """Close the socket, at the guard's end."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _look_for_way(self) -> None:
        """Connecting sends nothing, and tells whether there is a route."""
        if self._socket is None:
            return
        try:
            with socket.socket(self._socket.family, _KIND) as other:
                other.connect(self._address)
        except OSError as error:
            self.problem = f"datagram_to {plain(self.to, 80)}: {error.strerror}"
            return
        self.problem, self._is_way_known = "", True

    def _out(self, out: socket.socket, whole: bytes) -> bool:
        try:
            out.sendto(whole, socket.MSG_DONTWAIT, self._address)
        except OSError as error:
            self.problem = f"datagram_to {plain(self.to, 80)}: {error.strerror}"
            self._is_way_known = error.errno != errno.ENETUNREACH
            return False
        self.sent += 1
        self.problem, self._is_way_known = "", True
        return True


def facts_of(node: Node, top: list[Group], host: str, boot_id: str, mode: str) -> dict[str, Any]:
    """What a datagram begins with; ``top``: the largest shadow charges."""
    return {
        "node": plain(host, 64),
        "boot_id": boot_id,
        "mode": mode,
        "headroom_bytes": node.headroom_bytes,
        "residual_bytes": node.residual_bytes,
        "residual_grown_bytes": node.residual_grown_bytes,
        "top": [
            {"name": plain(group.name, 100), "counted_bytes": group.charge_bytes,
             "outside_bytes": group.outside.certain_bytes, "limit_bytes": group.limit_bytes}
            for group in top
        ],
    }  # fmt: skip


def split_address(to: str) -> tuple[str, int]:
    """``("::1", 9000)`` of ``[::1]:9000``; ValueError when it is no address."""
    host, _, port = to.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port[:6]) < 65536:
        raise ValueError("expected HOST:PORT")
    return host, int(port)


def resolve_host(host: str, seconds: float) -> tuple[int, str]:
    """The family and the number of ``host``; OSError when nobody knows it in time."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except OSError:
            continue
        return family, host
    ours, theirs = os.pipe()
    pid = os.fork()
    if not pid:
        _resolve_and_end(host, theirs)
    os.close(theirs)
    try:
        ready, _, _ = select.select([ours], [], [], seconds)
        words = os.read(ours, 200).decode() if ready else ""
    finally:
        os.close(ours)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    family_word, _, number = words.partition(" ")
    if not number:
        raise OSError(f"{host} is not known" if ready else f"no answer within {seconds:g} s")
    return int(family_word), number


def _resolve_and_end(host: str, fd: int) -> None:
    """In the child: resolver libraries and what they cache end with it."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_DGRAM)
        family, address = found[0][0], found[0][4]
        os.write(fd, f"{int(family)} {address[0]}".encode())
    finally:
        os._exit(0)
