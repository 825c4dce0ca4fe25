# SPDX-License-Identifier: Apache-2.0
"""On which nodes a guard ends a culprit by itself, as far as their reports tell, and the label by
which probation finds them.

The label is written by the actor alone; a node that could write it would draw suspects to itself.
A node of which no report stands is not known to be guarded.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from seawall.cluster.actor.actor_metrics import ActorMetrics
from seawall.cluster.kube.kube_client import METADATA_LIST_ONLY, KubeClient, KubeRefusal
from seawall.cluster.kube.node_row import NodeRow
from seawall.cluster.kube.node_watch import NODES_PATH
from seawall.cluster.objects.api_group import ACTOR_MANAGER, GUARD_ENFORCING, GUARD_LABEL
from seawall.cluster.objects.node_report_object import NodeReportObject

LOG: Final = logging.getLogger("seawall.actor")
WRITES_MOST: Final = 20
"""In one round."""
ENFORCE: Final = "enforce"


def enforcing_nodes(
    rows: Mapping[str, NodeRow], reports: Iterable[NodeReportObject]
) -> frozenset[str]:
    """Ready, and of this boot a report that says that its guard enforces and can kill."""
    return frozenset(
        one.node for one in reports
        if one.guard.mode == ENFORCE and one.guard.can_kill and not one.guard.is_braked
        and (row := rows.get(one.node)) is not None
        and row.ready == "True" and row.boot_id == one.boot_id
    )  # fmt: skip


class GuardLabels:
    """Makes the labels of nodes say what ``enforcing_nodes`` says."""

    def __init__(self, client: KubeClient, metrics: ActorMetrics) -> None:
        self._client, self._metrics = client, metrics
        self._labelled: set[str] | None = None

    def forget(self) -> None:
        """Somebody else may have written them."""
        self._labelled = None

    def write(self, wanted: frozenset[str], *, may_add: Callable[[], bool]) -> None:
        """Labels that are wrong go whatever the brakes say; new ones where ``may_add``.
        KubeProblem.
        """
        if self._labelled is None:
            items = self._client.items(
                NODES_PATH, {"labelSelector": GUARD_LABEL}, accept=METADATA_LIST_ONLY
            )
            self._labelled = {str(item["metadata"]["name"]) for item in items}
        gone = sorted(self._labelled - wanted)
        new = sorted(wanted - self._labelled) if may_add() else []
        for name in (*gone, *new)[:WRITES_MOST]:
            value = GUARD_ENFORCING if name in wanted else None
            body = {"metadata": {"labels": {GUARD_LABEL: value}}}
            try:
                self._client.merge(f"{NODES_PATH}/{name}", body, manager=ACTOR_MANAGER)
            except KubeRefusal as problem:
                if problem.is_later:
                    raise
                if problem.status != 404:
                    LOG.warning("label of node %s: %s", name, problem)
                    self._metrics.refusals.labels("refused by the API").inc()
                    continue
            if value is None:
                self._labelled.discard(name)
            else:
                self._labelled.add(name)
            self._metrics.count("probation", "done", is_dry_run=False)
