# SPDX-License-Identifier: Apache-2.0
"""Which finding explains which: a cause, and below it what follows from it.

A rule names in ``explained_by`` the rules whose finding explains its own.  That holds where the
cause is about the same workload or about the node as a whole; what the node suffers may also be
explained by what one workload does.  An ``info`` explains no more than an ``info``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from seawall.findings.finding import SEVERITIES, Judged, Severity


@dataclass(frozen=True, slots=True)
class Cause:
    """One finding that nothing else explains, with those that it explains."""

    item: Judged
    effects: tuple[Judged, ...]
    """Most severe first."""

    @property
    def severity(self) -> Severity:
        """The worst of the whole: a warning that makes the node critical is critical."""
        return min((one.finding.severity for one in (self.item, *self.effects)), key=_rank)

    @property
    def seconds_left(self) -> float | None:
        """The least that its findings know of."""
        known = [one.finding.seconds_left for one in (self.item, *self.effects)]
        return min((seconds for seconds in known if seconds is not None), default=None)


def causes(judged: Iterable[Judged]) -> list[Cause]:
    """What fires and is not muted, by cause: most severe first, then what runs out first."""
    firing = [i for i in judged if i.finding.verdict == "fires" and i.muted is None]
    firing.sort(key=_item_order)
    above = {index: _above(firing, index) for index in range(len(firing))}
    effects: dict[int, list[Judged]] = {}
    for index, item in enumerate(firing):
        root = _root(above, index)
        effects.setdefault(root, [])
        if root != index:
            effects[root].append(item)
    return sorted(
        (Cause(firing[root], tuple(below)) for root, below in effects.items()), key=_cause_order
    )


def about(judged: Iterable[Judged], workload: str) -> tuple[list[Judged], int]:
    """What concerns one workload: its own findings, quiet and blind ones, and what the node is
    short of; and how many that fire about others were left out.
    """
    shown: list[Judged] = []
    left_out = 0
    for item in judged:
        of = item.finding.workload
        is_firing = item.finding.verdict == "fires" and item.muted is None
        of_node = of is None and (item.has_holder and item.finding.severity != "info")
        if not is_firing or of_node or (of is not None and _is_same(of, workload)):
            shown.append(item)
        else:
            left_out += 1
    return shown, left_out


def _above(firing: Sequence[Judged], index: int) -> int | None:
    """The finding that explains this one, by the order in which its rule names them."""
    item = firing[index]
    for id_ in item.explained_by:
        for other, candidate in enumerate(firing):
            if other != index and candidate.id == id_ and _explains(candidate, item):
                return other
    return None


def _root(above: dict[int, int | None], index: int) -> int:
    """The first cause; of findings that explain each other in a circle, the most severe one."""
    path = [index]
    while (higher := above[path[-1]]) is not None:
        if higher in path:
            return min(path[path.index(higher) :])
        path.append(higher)
    return path[-1]


def _explains(cause: Judged, effect: Judged) -> bool:
    if cause.finding.severity == "info" and effect.finding.severity != "info":
        return False
    one, other = cause.finding.workload, effect.finding.workload
    return one is None or other is None or _is_same(one, other)


def _is_same(one: str, other: str) -> bool:
    """Or one is a part of the other: a container of its pod."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _rank(severity: Severity) -> int:
    return SEVERITIES.index(severity)


def _item_order(item: Judged) -> tuple[int, float, str, str]:
    finding = item.finding
    left = float("inf") if finding.seconds_left is None else finding.seconds_left
    return _rank(finding.severity), left, item.id, item.key


def _cause_order(cause: Cause) -> tuple[int, float, int, str, str]:
    """Of equals first what runs out first, then what explains most."""
    left = float("inf") if cause.seconds_left is None else cause.seconds_left
    return _rank(cause.severity), left, -len(cause.effects), cause.item.id, cause.item.key
