# SPDX-License-Identifier: Apache-2.0
"""A host that remembers every question with its answer, refusals included."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from seawall.host.host import JSON, READ_LIMIT_BYTES, Host, Unread


@dataclass(slots=True)
class Round:
    """Every answer of one pass over the machine."""

    files: dict[str, bytes | Unread] = field(default_factory=dict)
    names: dict[str, tuple[str, ...] | Unread] = field(default_factory=dict)
    links: dict[str, str | Unread] = field(default_factory=dict)
    probes: dict[tuple[str, str], JSON | Unread] = field(default_factory=dict)


class Recording:
    """Passes questions on to ``host`` and keeps the answers, round by round."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.rounds = [Round()]

    def next_round(self) -> None:
        """From here on answers belong to a new pass: rates need two."""
        self.rounds.append(Round())

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        answer = self._host.read(path, limit_bytes)
        self.rounds[-1].files[path] = answer
        return answer

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        files = self.rounds[-1].files
        for path, answer in zip(paths, self._host.read_each(paths), strict=True):
            files[path] = answer
            yield answer

    def names(self, path: str) -> tuple[str, ...] | Unread:
        answer = self._host.names(path)
        self.rounds[-1].names[path] = answer
        return answer

    def link(self, path: str) -> str | Unread:
        answer = self._host.link(path)
        self.rounds[-1].links[path] = answer
        return answer

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        answer = self._host.ask(probe, argument)
        self.rounds[-1].probes[probe, argument] = answer
        return answer
