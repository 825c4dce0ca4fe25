# SPDX-License-Identifier: Apache-2.0
"""A host that remembers every question with its answer, refusals included."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from seawall.host.host import JSON, READ_LIMIT_BYTES, Host, Unread


@dataclass(slots=True)
class Round:
    """Every answer of one pass over the machine."""

    files: dict[str, bytes | Unread] = field(default_factory=dict)
    names: dict[str, tuple[str, ...] | Unread] = field(default_factory=dict)
    links: dict[str, str | Unread] = field(default_factory=dict)
    probes: dict[tuple[str, str], JSON | Unread] = field(default_factory=dict)


def overlay_passes(rounds: Iterable[Round]) -> Round:
    """One round: the newest answer to each question."""
    known = Round()
    for one in rounds:
        known.files |= one.files
        known.names |= one.names
        known.links |= one.links
        known.probes |= one.probes
    return known


class Recording:
    """Passes questions on to ``host`` and keeps the answers, round by round.

    A question that comes again within a round gets the answer that is kept: otherwise a
    replay would see another machine than the one that was captured.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self.rounds = [Round()]

    def next_round(self) -> None:
        """From here on answers belong to a new pass: rates need two."""
        self.rounds.append(Round())

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        files = self.rounds[-1].files
        if path not in files:
            files[path] = self._host.read(path, limit_bytes)
        return files[path]

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        files = self.rounds[-1].files
        new = [path for path in paths if path not in files]
        files.update(zip(new, self._host.read_each(new), strict=True))
        yield from map(files.__getitem__, paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        names = self.rounds[-1].names
        if path not in names:
            names[path] = self._host.names(path)
        return names[path]

    def link(self, path: str) -> str | Unread:
        links = self.rounds[-1].links
        if path not in links:
            links[path] = self._host.link(path)
        return links[path]

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        probes = self.rounds[-1].probes
        if (probe, argument) not in probes:
            probes[probe, argument] = self._host.ask(probe, argument)
        return probes[probe, argument]
