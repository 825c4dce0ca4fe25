# SPDX-License-Identifier: Apache-2.0
"""A host that knows one answer more: what was found out before it is asked, or beside it."""

from collections.abc import Iterator, Mapping, Sequence

from seawall.host.host import JSON, READ_LIMIT_BYTES, Host, Unread


class OverlayHost:
    """``host``, with ``answers`` to probes that take no argument."""

    def __init__(self, host: Host, answers: Mapping[str, JSON | Unread]) -> None:
        self._host = host
        self._answers = answers

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        return self._host.read(path, limit_bytes)

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        return self._host.read_each(paths)

    def names(self, path: str) -> tuple[str, ...] | Unread:
        return self._host.names(path)

    def link(self, path: str) -> str | Unread:
        return self._host.link(path)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        if not argument and probe in self._answers:
            return self._answers[probe]
        return self._host.ask(probe, argument)
