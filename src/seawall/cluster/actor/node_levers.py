# SPDX-License-Identifier: Apache-2.0
"""What is done about nodes, not about one workload: the label of guarded ones, orders to silent
ones, and innocents that leave dead ones early.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from seawall.cluster.actor.actor_events import ActorEvent
from seawall.cluster.actor.actor_metrics import ActorMetrics
from seawall.cluster.actor.family_pods import FamilyPod
from seawall.cluster.actor.family_view import ActorQuarantine, ClusterView
from seawall.cluster.actor.guarded_nodes import GuardLabels, enforcing_nodes
from seawall.cluster.actor.innocent_moves import MOVES_PER_MINUTE, SILENT_SECONDS, innocents
from seawall.cluster.actor.node_rescue import in_name_of, rescue_orders
from seawall.cluster.kube.kube_client import KubeClient, KubeRefusal, Object, steady_seconds
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, unix_seconds
from seawall.cluster.objects.action_levers import ActionLever
from seawall.cluster.objects.api_group import RESCUE_ORDER, path_of
from seawall.cluster.objects.node_report_object import NodeReportObject, node_report_object
from seawall.cluster.objects.object_fields import ObjectProblem
from seawall.cluster.objects.policy_actions import PolicyActions
from seawall.cluster.objects.rescue_order_object import (
    FINAL_STATES,
    RescueOrderObject,
    rescue_order_object,
)
from seawall.cluster.objects.workload_quarantine_object import QuarantineState
from seawall.cluster.observer.observer_events import EventTarget

LOG: Final = logging.getLogger("seawall.actor")
ORDER_AGAIN_SECONDS: Final = 120.0
"""Before a node that still is silent is ordered once more."""
CLAIM_SECONDS: Final = 2.0
"""Between two looks for the quarantine of a silent node's pods."""
MOVE_ROUND_SECONDS: Final = 15.0
PODS_PAGE: Final = 250


class NodeLevers:
    """Of one process; told of reports by the thread that acts."""

    def __init__(
        self, client: KubeClient, metrics: ActorMetrics, tell: Callable[[ActorEvent], None]
    ) -> None:
        self._client, self._metrics, self._tell = client, metrics, tell
        self._labels = GuardLabels(client, metrics)
        self._reports: dict[str, tuple[NodeReportObject, float]] = {}
        self._ordered: dict[str, float] = {}
        self._asked: dict[str, float] = {}
        self._looked: dict[str, float] = {}
        self._moved: deque[float] = deque()
        self._dry: set[str] = set()

    def forget(self) -> None:
        """Another one led meanwhile."""
        self._labels.forget()

    def take_report(self, event: ObjectEvent[Object]) -> None:
        """Of a watch of NodeReports."""
        if event.value is None:
            return
        name = str(event.value["metadata"].get("name"))
        self._reports.pop(name, None)
        if event.kind is not ObjectEventKind.GONE:
            try:
                report = node_report_object(event.value)
            except ObjectProblem as problem:
                LOG.warning("left out: %s", problem)
            else:
                self._reports[name] = (report, _received(event.value) or event.at_seconds)

    def enforcing(self, rows: Mapping[str, NodeRow]) -> frozenset[str]:
        """Nodes whose guard ends a culprit by itself, as far as known."""
        return enforcing_nodes(rows, [report for report, _ in self._reports.values()])

    def proved(self) -> frozenset[tuple[str, str]]:
        """Node and pod uid, of pods whose node's own guard has proved them."""
        return frozenset(
            (report.node, one.pod_uid) for report, _ in self._reports.values()
            for one in (report.distress.culprits if report.distress else ()) if one.is_proved
        )  # fmt: skip

    def act(
        self, rows: Mapping[str, NodeRow], quarantines: Iterable[ActorQuarantine],
        actions: PolicyActions, view: ClusterView,
    ) -> None:  # fmt: skip
        """KubeProblem: the API server cannot be asked."""
        levers = actions.levers.union(*(actions.levers_in(one.name) for one in actions.namespaces))
        may = not view.tripped and not actions.dry_run
        if ActionLever.PROBATION in levers and not actions.dry_run:
            self._labels.write(view.enforcing_nodes, may_add=lambda: may)
        if view.tripped:
            return
        if ActionLever.RESCUE in levers:
            self._order(rows, list(quarantines), actions, view)
        if ActionLever.MOVE_INNOCENTS in levers:
            self._move(rows, list(quarantines), actions, view)

    # --- orders --------------------------------------------------------------------------

    def _order(
        self, rows: Mapping[str, NodeRow], quarantines: list[ActorQuarantine],
        actions: PolicyActions, view: ClusterView,
    ) -> None:  # fmt: skip
        protected = view.protected_namespaces
        orders = rescue_orders(
            rows, self._reports.values(), actions, view.now_seconds, protected.__contains__
        )
        for order in orders:
            last = self._ordered.get(order.boot_id)
            if last is not None and view.now_seconds - last < ORDER_AGAIN_SECONDS:
                continue
            claimed = self._claimed(order, quarantines, view)
            if claimed is None:
                continue  # the observer has not named it yet, or a person has released it
            order = claimed
            self._ordered[order.boot_id] = view.now_seconds
            if not actions.dry_run:
                if not self._clear(order.node, view.now_seconds):
                    continue
                if not self._create(order):
                    del self._ordered[order.boot_id]  # its fence hears of a quarantine after us
                    continue
            self._say_of_node(order, actions)

    def _claimed(
        self, order: RescueOrderObject, quarantines: list[ActorQuarantine], view: ClusterView
    ) -> RescueOrderObject | None:
        """In the name of a quarantine that stands; its fence wants one."""
        if steady_seconds() - self._asked.get(order.boot_id, -1e9) < CLAIM_SECONDS:
            return None
        self._asked[order.boot_id] = steady_seconds()
        open_ones = (one for one in quarantines if not one.is_over(view.now_seconds))
        standing = [(one.name, one.object.match) for one in open_ones
                    if one.object.state is not QuarantineState.RELEASED]  # fmt: skip
        if not standing:
            return None
        pods = self._client.items(
            "/api/v1/pods", {"fieldSelector": f"spec.nodeName={order.node}"}, limit=PODS_PAGE
        )
        return in_name_of(order, pods, standing)

    def _say_of_node(self, order: RescueOrderObject, actions: PolicyActions) -> None:
        lever, result = ActionLever.RESCUE.value, "dry-run" if actions.dry_run else "done"
        self._metrics.count(lever, result, is_dry_run=actions.dry_run)
        words = "dry run, nothing was written: " if actions.dry_run else ""
        note = f"{words}its guard is asked to end {', '.join(order.pods)}, in the name of "
        note += f"{order.quarantine}: {order.reason}"
        LOG.info("%s: %s", order.node, note)
        target = EventTarget("Node", order.node)
        self._tell(ActorEvent("RescueOrdered", target, note, f"{order.boot_id} {result}"))

    def _clear(self, node: str, now_seconds: float) -> bool:
        """Whether there is room for an order; one that is answered or over makes it."""
        path = path_of(RESCUE_ORDER, node)
        try:
            document = self._client.get(path)
            before = rescue_order_object(document)
        except KubeRefusal as problem:
            if problem.status != 404:
                raise
            return True
        except ObjectProblem:
            pass
        else:
            if before.status.state not in FINAL_STATES and before.expires_seconds > now_seconds:
                return False
        self._client.delete(path, uid=str(document["metadata"].get("uid") or ""))
        return True

    def _create(self, order: RescueOrderObject) -> bool:
        body = {name: value for name, value in order.document().items() if name != "status"}
        try:
            self._client.create(path_of(RESCUE_ORDER), body)
        except KubeRefusal as problem:
            if problem.is_later:
                raise
            LOG.warning("order to %s: %s", order.node, problem)
            self._metrics.refusals.labels("refused by the API").inc()
            return False
        return True

    # --- innocents -----------------------------------------------------------------------

    def _move(
        self, rows: Mapping[str, NodeRow], quarantines: list[ActorQuarantine],
        actions: PolicyActions, view: ClusterView,
    ) -> None:  # fmt: skip
        """From nodes that a suspect killed: of others nobody knows whether they are dead."""
        standing = [one for one in quarantines if one.object.state is not QuarantineState.RELEASED]
        named = {node for one in standing if one.object.status for node in one.object.status.nodes}
        for node in sorted(named & view.silent_nodes):
            row = rows.get(node)
            is_young = row is None or view.now_seconds - row.ready_seconds < SILENT_SECONDS
            if is_young or steady_seconds() - self._looked.get(node, -1e9) < MOVE_ROUND_SECONDS:
                continue
            self._looked[node] = steady_seconds()
            pods = innocents(
                self._client.items(
                    "/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"}, limit=PODS_PAGE
                ),
                [one.object.match for one in standing], actions, view.protected_namespaces,
            )  # fmt: skip
            for pod in pods:
                self._move_one(pod, actions)

    def _move_one(self, pod: FamilyPod, actions: PolicyActions) -> None:
        now = steady_seconds()
        while self._moved and now - self._moved[0] > 60.0:
            self._moved.popleft()
        if len(self._moved) >= MOVES_PER_MINUTE or pod.uid in self._dry:
            return
        lever, result = ActionLever.MOVE_INNOCENTS.value, "done"
        if actions.dry_run:
            result = "dry-run"
            self._dry.add(pod.uid)
        else:
            path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
            try:
                self._client.delete(path, uid=pod.uid, resource_version=pod.version)
            except KubeRefusal as problem:
                if problem.is_later:
                    raise
                if problem.status not in (404, 409):
                    LOG.warning("%s stays: %s", path, problem)
                    self._metrics.refusals.labels("refused by the API").inc()
                return
            self._moved.append(now)
        self._metrics.count(lever, result, is_dry_run=actions.dry_run)
        note = f"node {pod.node} is dead: it is made anew elsewhere before its 300 s are over"
        target = EventTarget("Pod", pod.name, pod.uid, pod.namespace)
        reason = "DryRun" if actions.dry_run else "InnocentMoved"
        self._tell(ActorEvent(reason, target, note, f"{pod.node} {result}", is_warning=False))


def _received(document: Object) -> float:
    """When the API server took the last write of it; 0: it does not say."""
    rows = document["metadata"].get("managedFields")
    times = [
        unix_seconds(row["time"])
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict) and isinstance(row.get("time"), str)
    ]
    return max(times, default=0.0)
