# SPDX-License-Identifier: Apache-2.0
"""How busy nodes are that lived on: the controls against which a dead node is seen.

Of some living nodes of the dead one's stratum the pods are listed, a request for each; what was
asked holds for a minute, so deaths in a row share it.  Which ones depends on their names alone.
"""

import zlib
from collections.abc import Callable, Collection, Iterable
from typing import Final

from seawall.cluster.judge.node_death import NodeLoads
from seawall.cluster.kube.kube_client import KubeProblem
from seawall.cluster.objects.node_death_object import LOADS_MOST
from seawall.cluster.observer.pod_rows import NodePod
from seawall.cluster.observer.request_budget import NoRequestLeft

LEAST_NODES: Final = 5
"""Fewer say nothing of a stratum that has more."""
KEEP_SECONDS: Final = 60.0
_DAEMON_SET: Final = "DaemonSet"


class StratumLoads:
    """``pods_of``: the pods of one node that have not ended.  KubeProblem, ValueError,
    NoRequestLeft.
    """

    def __init__(self, steady_seconds: Callable[[], float]) -> None:
        self._steady_seconds = steady_seconds
        self._kept: dict[str, tuple[int, float]] = {}

    def loads(
        self, node: str, own: int, living: Collection[str],
        pods_of: Callable[[str], Iterable[NodePod]], unseen: list[str],
    ) -> NodeLoads | None:  # fmt: skip
        """None: too few could be asked, which ``unseen`` says.

        own:     tenants' pods of the dead node
        living:  of its stratum, without it
        """
        now = self._steady_seconds()
        self._kept = {name: one for name, one in self._kept.items() if one[1] > now}
        # Those that are known first, then by a number that nobody chose.
        order = sorted(living, key=lambda one: (one not in self._kept, _place(node, one), one))
        sample: list[int] = []
        problem = "no node of its stratum lives"
        for name in order[:LOADS_MOST]:
            if name not in self._kept:
                try:
                    self._kept[name] = tenant_pods(pods_of(name)), now + KEEP_SECONDS
                except NoRequestLeft:
                    problem = "no request is left"
                    break
                except (KubeProblem, ValueError) as refusal:
                    problem = str(refusal)
                    break
            sample.append(self._kept[name][0])
        if len(sample) < max(min(LEAST_NODES, len(living)), 1):
            unseen.append(f"how busy other nodes are: {problem}")
            return None
        return NodeLoads(own, len(living), tuple(sample))


def tenant_pods(pods: Iterable[NodePod]) -> int:
    """That make a node busier than another: neither static ones nor those of a DaemonSet."""
    return sum(
        not pod.is_static and (pod.owner is None or pod.owner.kind != _DAEMON_SET) for pod in pods
    )


def _place(node: str, other: str) -> int:
    return zlib.crc32(f"{node} {other}".encode())
