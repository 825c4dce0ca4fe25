# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster brake``: the actor begins nothing new, and every guard in reach observes.

Who was reached is what each node's agent says of its guard after the brake was put on; whoever
says nothing was not reached.  The brake disarms: taken off, a guard is as armed as its own file
says, and no more.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.cluster.acts.act_desk import ActDesk, short
from seawall.cluster.acts.act_events import ActEvent
from seawall.cluster.acts.cluster_state import actor_state, policy_of
from seawall.cluster.kube.kube_client import METADATA_LIST_ONLY, KubeRefusal, Object
from seawall.cluster.objects.api_group import (
    API_VERSION,
    CLUSTER_POLICY,
    GROUP,
    NODE_REPORT,
    POLICY_NAME,
    path_of,
)
from seawall.cluster.objects.node_report_object import NodeReportObject, node_report_object
from seawall.cluster.objects.object_fields import ObjectProblem, clean
from seawall.cluster.pages.cluster_act_page import BrakeAnswer, ClusterActPage
from seawall.findings.blindness import NotSeen
from seawall.words import counted

WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 2.0
_REST_SHARE: Final = 4.0
"""Of the time that a look takes: all reports of a large cluster are some tens of megabytes."""
_CLOCK_SECONDS: Final = 2.0
"""A node's clock may be behind the API server's by so much."""
_REASON_ANNOTATION: Final = f"{GROUP}/brake-reason"
_REASON_LETTERS: Final = 512


@dataclass(frozen=True, slots=True)
class BrakeWish:
    """What the person typed."""

    is_off: bool
    reason: str
    wait_seconds: float = WAIT_SECONDS


def brake(desk: ActDesk, wish: BrakeWish) -> ClusterActPage:
    """UsageProblem: the cluster has no Seawall; KubeProblem."""
    policy = policy_of(desk)
    is_already = policy.brake is not wish.is_off
    by = desk.person()
    reason = clean(wish.reason, _REASON_LETTERS) or f"by hand, by {by or 'a person'}"
    is_written = is_already or _write(desk, bool(policy.uid), wish, reason)
    guards: tuple[BrakeAnswer, ...] = ()
    if is_written and not wish.is_off and not desk.is_dry_run:
        guards = _wait(desk, wish.wait_seconds, is_already)
    missed = [one for one in guards if one.state != "observes"]
    outcome = desk.outcome
    if outcome == "done" and missed:
        outcome = "partly"
    if is_already and wish.is_off:
        outcome = "nothing"
    return ClusterActPage(
        act="brake", source=desk.source, as_of_unix_seconds=desk.client.server_seconds(),
        subject=POLICY_NAME, headline=_headline(wish, guards, is_already),
        is_dry_run=desk.is_dry_run, outcome=outcome, steps=tuple(desk.steps),
        effects=tuple(_effects(desk, wish)), guards=guards, unseen=tuple(desk.unseen),
        is_taken_back=not wish.is_off,
        commands=("seawall cluster why",) if wish.is_off else ("seawall cluster brake --off",),
    )  # fmt: skip


def _write(
    desk: ActDesk, is_there: bool, wish: BrakeWish, reason: str  # noqa: FBT001 - values
) -> bool:  # fmt: skip
    kind = CLUSTER_POLICY.kind
    annotation = None if wish.is_off else reason
    spec = {"brake": not wish.is_off}
    if is_there:
        body = {"metadata": {"annotations": {_REASON_ANNOTATION: annotation}}, "spec": spec}
        path = path_of(CLUSTER_POLICY, POLICY_NAME)
        is_written = desk.merge(path, kind, POLICY_NAME, body, before=desk.client.get(path))
    else:
        metadata = {"name": POLICY_NAME, "annotations": {_REASON_ANNOTATION: reason}}
        body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
        words = "all else in it has its defaults"
        is_written = desk.create(path_of(CLUSTER_POLICY), body, words) is not None
    if is_written:
        uid = "" if desk.is_dry_run else policy_of(desk).uid
        told = "BrakeReset" if wish.is_off else "BrakeTripped"
        desk.tell([ActEvent(told, reason, kind, API_VERSION, POLICY_NAME, uid,
                            is_warning=not wish.is_off)])  # fmt: skip
    return is_written


def _wait(desk: ActDesk, seconds: float, is_already: bool) -> tuple[BrakeAnswer, ...]:  # noqa: FBT001 - a value
    """Until every guard has answered, or the time is over."""
    since = 0.0 if is_already else desk.now_seconds - _CLOCK_SECONDS
    until = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        nodes, reports = _nodes(desk), _reports(desk)
        answers = guard_answers(nodes, reports, since)
        is_over = time.monotonic() >= until or desk.unseen
        if is_over or all(one.state == "observes" for one in answers):
            return answers
        pause = max(_LOOK_SECONDS, _REST_SHARE * (time.monotonic() - began))
        time.sleep(max(0.0, min(pause, until - time.monotonic())))


def guard_answers(
    nodes: Iterable[str], reports: Mapping[str, NodeReportObject], since_seconds: float
) -> tuple[BrakeAnswer, ...]:
    """Of each node of the cluster; who was not reached last.  Pure."""
    answers = [_answer(node, reports.get(node), since_seconds) for node in sorted(nodes)]
    return tuple(sorted(answers, key=lambda one: (one.state != "observes", one.node)))


def _answer(node: str, report: NodeReportObject | None, since_seconds: float) -> BrakeAnswer:
    if report is None:
        return BrakeAnswer(node, "not reached", "", "no agent has said anything of its guard", None)
    mode, at = report.guard.mode, report.at_seconds
    if report.guard.state == "silent":
        return BrakeAnswer(node, "not reached", mode, "its agent hears nothing of a guard", at)
    if at < since_seconds:
        words = "its agent has not answered since the brake"
        return BrakeAnswer(node, "not reached", mode, words, at)
    if not report.guard.is_braked:
        return BrakeAnswer(node, "not reached", mode, "its guard has no brake on", at)
    return BrakeAnswer(node, "observes", mode, "", at)


def _nodes(desk: ActDesk) -> list[str]:
    try:
        pages = desk.client.pages("/api/v1/nodes", accept=METADATA_LIST_ONLY)
        return [_name(item) for page in pages for item in page.get("items") or ()]
    except KubeRefusal as refusal:
        desk.unseen.append(NotSeen("the nodes", short(refusal), "list nodes"))
        return []


def _reports(desk: ActDesk) -> dict[str, NodeReportObject]:
    try:
        items = desk.client.items(path_of(NODE_REPORT))
    except KubeRefusal as refusal:
        desk.unseen.append(NotSeen("what guards say", short(refusal), "list nodereports"))
        return {}
    reports = {}
    for item in items:
        try:
            one = node_report_object(item)
        except ObjectProblem:
            continue  # then that node has not answered
        reports[one.node] = one
    return reports


def _name(item: Object) -> str:
    metadata: Any = item.get("metadata")
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""


def _headline(wish: BrakeWish, guards: tuple[BrakeAnswer, ...], is_already: bool) -> str:  # noqa: FBT001 - a value
    already = " already" if is_already else ""
    if wish.is_off:
        return f"the brake is off{already}"
    missed = sum(one.state != "observes" for one in guards)
    whole = f"the brake is on{already}"
    if not guards:
        return whole
    if missed:
        return f"{whole}, and {missed} of {counted(len(guards), 'guard')} WERE NOT REACHED"
    return f"{whole}: {counted(len(guards), 'guard')} observe"


def _effects(desk: ActDesk, wish: BrakeWish) -> Iterator[str]:
    actor = actor_state(desk)
    has_actor = actor.state != "nobody"
    if wish.is_off:
        yield "each guard does again what its own file says, and no more: nobody is armed by this"
        if has_actor:
            yield "the actor goes on from now; what it did not do meanwhile is not made up for"
        return
    if has_actor:
        yield "the actor begins nothing new; undo goes on, and holds end by themselves"
    yield "what is changed stays so until: seawall cluster undo --all"
    yield "of a node that was not reached: touch /run/seawall/brake on it"
