# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster rescue NODE``: an order to a silent node, and what came of it.

A node that thrashes is silent for the cluster, and its agent still talks.  The order names whom
that node's own report proved; its guard judges by itself, and the answer says what came back.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.acts.act_desk import ActDesk, short
from seawall.cluster.kube.kube_client import KubeRefusal, Object
from seawall.cluster.objects.api_group import NODE_REPORT, RESCUE_ORDER, path_of
from seawall.cluster.objects.node_report_object import (
    NodeReportObject,
    ReportCulprit,
    node_report_object,
)
from seawall.cluster.objects.object_fields import ObjectProblem, clean
from seawall.cluster.objects.rescue_order_object import (
    FINAL_STATES,
    ORDER_SECONDS,
    PODS_MOST,
    RescueOrderObject,
    RescueState,
    RescueStatus,
    rescue_order_object,
)
from seawall.cluster.pages.cluster_act_page import ActOutcome, ClusterActPage
from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem
from seawall.words import size

WAIT_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 1.0
_OLD_SECONDS: Final = 120.0
"""What a node said of its shortage is told again every 10 s, after ten minutes every minute."""
_REASON_LETTERS: Final = 512


@dataclass(frozen=True, slots=True)
class RescueWish:
    """What the person typed."""

    node: str
    pods: tuple[str, ...] = ()
    """Uids; empty: whom the node's report proves."""
    reason: str = ""
    wait_seconds: float = WAIT_SECONDS


@dataclass(slots=True)
class _Answer:
    status: RescueStatus
    answered_seconds: float | None = None
    """From the order; None: no final answer came."""
    ready_seconds: float | None = None
    """None: it was not Ready again."""


def rescue(
    desk: ActDesk, wish: RescueWish, *, sleep: Callable[[float], None] = time.sleep
) -> ClusterActPage:
    """UsageProblem: there is nobody to name, or an order is under way; KubeProblem."""
    report = _report(desk, wish.node)
    named = _named(report, wish, desk.now_seconds)
    pods = wish.pods or tuple(dict.fromkeys(one.pod_uid for one in named))[:PODS_MOST]
    was_ready = _is_ready(desk, wish.node)
    order = RescueOrderObject(
        node=wish.node, boot_id=report.boot_id, pods=pods,
        requested_by=desk.person() or "a person",
        expires_seconds=desk.now_seconds + ORDER_SECONDS,
        reason=clean(wish.reason, _REASON_LETTERS),
    )  # fmt: skip
    answer = _Answer(RescueStatus())
    if _clear(desk, wish.node) and _create(desk, order) and not desk.is_dry_run:
        answer = _wait(desk, wish, was_ready=was_ready, sleep=sleep)
    outcome: ActOutcome = desk.outcome
    if outcome == "done" and answer.status.state != RescueState.DONE:
        outcome = "partly"
    names = ", ".join(_name(one) for one in named) or ", ".join(pods)
    return ClusterActPage(
        act="rescue", source=desk.source, as_of_unix_seconds=desk.client.server_seconds(),
        subject=wish.node, headline=_headline(wish.node, names, answer, outcome),
        is_dry_run=desk.is_dry_run, outcome=outcome, steps=tuple(desk.steps),
        effects=_effects(report, answer, is_dry_run=desk.is_dry_run),
        lost=(f"what {names} has in memory, if its guard ends it",),
        commands=(f"seawall cluster why {wish.node}",), unseen=tuple(desk.unseen),
    )  # fmt: skip


def _report(desk: ActDesk, node: str) -> NodeReportObject:
    try:
        return node_report_object(desk.client.get(path_of(NODE_REPORT, node)))
    except KubeRefusal as refusal:
        if refusal.status != 404:
            raise
        raise UsageProblem(
            f"{node}: no agent has told anything of that node, so nobody there would hear an order"
        ) from None
    except ObjectProblem as problem:
        raise UsageProblem(f"{node}: its report cannot be read: {problem}") from None


def _named(
    report: NodeReportObject, wish: RescueWish, now_seconds: float
) -> tuple[ReportCulprit, ...]:  # fmt: skip
    distress = report.distress
    culprits = () if distress is None else distress.culprits
    if wish.pods:
        return tuple(one for one in culprits if one.pod_uid in wish.pods)
    if distress is None:
        raise UsageProblem(f"{wish.node}: its agent tells of no shortage; nobody is to be ended")
    if now_seconds - report.at_seconds > _OLD_SECONDS:
        age = now_seconds - report.at_seconds
        raise UsageProblem(
            f"{wish.node}: its agent last said something {age:.0f} s ago: it hears no order"
        )
    proved = tuple(one for one in culprits if one.is_proved)
    if not proved:
        raise UsageProblem(
            f"{wish.node}: its guard has proved nobody; who is to be judged all the same is named "
            "by --pod UID"
        )
    return proved


def _name(one: ReportCulprit) -> str:
    return f"{one.namespace}/{one.pod}" if one.pod else one.pod_uid


def _clear(desk: ActDesk, node: str) -> bool:
    """An answered order makes room; one that is under way does not."""
    path = path_of(RESCUE_ORDER, node)
    try:
        found = desk.client.get(path)
    except KubeRefusal as refusal:
        if refusal.status == 404:
            return True
        raise
    uid = str((found.get("metadata") or {}).get("uid", ""))
    try:
        before = rescue_order_object(found)
    except ObjectProblem:
        before = None
    is_over = before is None or before.status.state in FINAL_STATES
    if before is not None and not is_over and before.expires_seconds > desk.now_seconds:
        left = before.expires_seconds - desk.now_seconds
        raise UsageProblem(
            f"{node}: an order of {before.requested_by} is under way for another {left:.0f} s"
        )
    return desk.delete(path, RESCUE_ORDER.kind, node, uid, "an earlier one, which is over")


def _create(desk: ActDesk, order: RescueOrderObject) -> bool:
    body = {key: value for key, value in order.document().items() if key != "status"}
    path = path_of(RESCUE_ORDER)
    if desk.is_dry_run and any(step.what == "delete" for step in desk.steps):
        desk.plan("create", RESCUE_ORDER.kind, order.node, "/spec", None, body["spec"])
        return True
    return desk.create(path, body, f"names {', '.join(order.pods)}") is not None


def _wait(
    desk: ActDesk, wish: RescueWish, *, was_ready: bool, sleep: Callable[[float], None]
) -> _Answer:
    """For the node's answer, and then for it to be Ready again."""
    began = time.monotonic()
    answer = _Answer(RescueStatus())
    while (passed := time.monotonic() - began) < wish.wait_seconds:
        if answer.answered_seconds is None:
            answer.status = _status(desk, wish.node)
            if answer.status.state in FINAL_STATES:
                answer.answered_seconds = passed
        is_refused = answer.status.state == RescueState.REFUSED
        if not was_ready and answer.ready_seconds is None and _is_ready(desk, wish.node):
            answer.ready_seconds = passed
        is_back = was_ready or answer.ready_seconds is not None
        if is_refused or (answer.answered_seconds is not None and is_back):
            break
        sleep(_LOOK_SECONDS)
    return answer


def _status(desk: ActDesk, node: str) -> RescueStatus:
    try:
        return rescue_order_object(desk.client.get(path_of(RESCUE_ORDER, node))).status
    except ObjectProblem as problem:
        desk.unseen = [NotSeen("the node's answer", short(problem), "")]
    except KubeRefusal as refusal:
        desk.unseen = [NotSeen("the node's answer", short(refusal), "get rescueorders")]
    return RescueStatus()


def _is_ready(desk: ActDesk, node: str) -> bool:
    try:
        found: Object = desk.client.get(f"/api/v1/nodes/{node}")
    except KubeRefusal as refusal:
        if refusal.status == 404:
            raise UsageProblem(f"{node}: the cluster has no such node") from None
        raise
    status: Any = found.get("status")
    rows = status.get("conditions") if isinstance(status, dict) else None
    return any(
        row.get("type") == "Ready" and row.get("status") == "True"
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
    )


def _headline(node: str, names: str, answer: _Answer, outcome: ActOutcome) -> str:
    state = answer.status.state
    if outcome == "planned":
        return f"{node} would be ordered to end {names}"
    if state == RescueState.DONE:
        back = f"{size(answer.status.returned_bytes or 0)} came back"
        ready = answer.ready_seconds
        again = "" if ready is None else f", Ready {ready:.0f} s after the order"
        return f"{node}: its guard ended {names}, {back}{again}"
    if state == RescueState.REFUSED:
        return f"{node}: its guard REFUSED: {clean(answer.status.message, 300)}"
    if state is None:
        return f"{node}: NO ANSWER to the order to end {names}"
    return f"{node}: the order is {state.value}: {clean(answer.status.message, 300)}"


def _effects(report: NodeReportObject, answer: _Answer, *, is_dry_run: bool) -> tuple[str, ...]:
    words = []
    if is_dry_run:
        words.append("its guard judges by itself: only whom it proves goes, and nobody else")
    if report.guard.mode == "observe" and not report.guard.takes_rescue:
        words.append("its guard only observes, and its file does not say rescue = true")
    if answer.status.decision:
        words.append(f"decision {answer.status.decision} in /run/seawall/decisions.jsonl there")
    if answer.status.state == RescueState.DONE and answer.ready_seconds is None:
        words.append("what was bound to the node is still there; nothing was moved for it")
    return tuple(words)
