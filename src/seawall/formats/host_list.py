# SPDX-License-Identifier: Apache-2.0
"""Slurm's short form of many nodes: ``gpu[001-016,020],login1`` (src/common/hostlist.c)."""

import re
from collections.abc import Iterator
from typing import Final

HOSTS_MOST: Final = 65536
"""Of one expression; slurm.conf itself takes no more nodes."""
_PART: Final = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*", re.ASCII)
_BRACKET: Final = re.compile(r"\[([^\[\]]*)\]", re.ASCII)
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?\Z", re.ASCII)
_EMPTY: Final = ("", "(null)", "None assigned", "n/a", "N/A")


def hosts_of(expression: str) -> tuple[str, ...]:
    """The nodes in their order; none for an empty one.

    ValueError: it is not such an expression, or names more than HOSTS_MOST.
    """
    if expression.strip() in _EMPTY:
        return ()
    hosts: list[str] = []
    position = 0
    while position <= len(expression):
        part = _PART.match(expression, position)
        word = part[0] if part else ""
        position += len(word)
        if position < len(expression) and expression[position] != ",":
            raise ValueError(f"no list of nodes: {expression[:80]!r}")
        position += 1
        if word:
            for host in _expanded(word):
                hosts.append(host)
                if len(hosts) > HOSTS_MOST:
                    raise ValueError(f"more than {HOSTS_MOST} nodes: {expression[:80]!r}")
    return tuple(hosts)


def _expanded(word: str) -> Iterator[str]:
    bracket = _BRACKET.search(word)
    if bracket is None:
        yield word
        return
    before, after = word[: bracket.start()], word[bracket.end() :]
    for number in _numbers(bracket[1]):
        yield from _expanded(f"{before}{number}{after}")


def _numbers(text: str) -> Iterator[str]:
    for part in text.split(","):
        found = _RANGE.match(part)
        if found is None:
            raise ValueError(f"no range of nodes: {part[:80]!r}")
        first, last = int(found[1]), int(found[2] or found[1])
        if last - first > HOSTS_MOST:
            raise ValueError(f"more than {HOSTS_MOST} nodes: {part!r}")
        for number in range(first, last + 1):
            yield str(number).zfill(len(found[1]))
