# SPDX-License-Identifier: Apache-2.0
"""The same workload on many nodes: what takes one node will take the next."""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from seawall.replay.report_found import Occasion
from seawall.replay.report_verdict import HARM

# Kubernetes' own letters for what it adds to names (k8s.io/apimachinery util/rand): no vowels.
_LETTERS: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_MADE: Final = re.compile(rf"-(?:{_LETTERS}{{6,10}}-)?{_LETTERS}{{5}}\Z")
_NAME_MOST: Final = 512


class Poison(NamedTuple):
    """A workload that was chosen, on all nodes together."""

    name: str
    """``namespace/pod-*/container`` where Kubernetes made up the end of the pod's name."""
    occasions: int
    nodes: tuple[str, ...]
    harmed: int
    """Times that the kernel killed or the node died after it."""
    others: int
    """Workloads that the kernel ended and the guard had not chosen."""


def poison_in(occasions: Iterable[Occasion]) -> list[Poison]:
    """On most nodes first; each occasion counts once a workload."""
    found: dict[str, list[Occasion]] = {}
    for occasion in occasions:
        for name in dict.fromkeys(kind_of(target.name) for target in occasion.targets):
            found.setdefault(name, []).append(occasion)
    rows = [_poison(name, some) for name, some in found.items()]
    return sorted(rows, key=lambda row: (-len(row.nodes), -row.occasions, row.name))


def _poison(name: str, some: list[Occasion]) -> Poison:
    others = sum(not kill.is_target for one in some for kill in one.truth.kills)
    nodes = tuple(dict.fromkeys(one.node for one in some))
    return Poison(name, len(some), nodes, sum(one.ending in HARM for one in some), others)


def kind_of(name: str) -> str:
    """The name without what differs from pod to pod of one workload."""
    parts = name[:_NAME_MOST].split("/")
    if len(parts) != 3:
        return name
    parts[1] = _MADE.sub("-*", parts[1])
    return "/".join(parts)
