# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster quarantine WORKLOAD`` and ``approve NAME``: a person's word makes it active."""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from seawall.cluster.acts.act_desk import ActDesk
from seawall.cluster.acts.act_events import PODS_MOST, ActEvent, quarantine_event
from seawall.cluster.acts.cluster_state import (
    actor_state,
    observer_state,
    policy_of,
    quarantine_named,
    quarantines,
)
from seawall.cluster.acts.workload_target import (
    WorkloadTarget,
    living_pods,
    quarantines_of,
    read_target,
    workload_name_of,
)
from seawall.cluster.changes.changeable_kinds import changeable_kind
from seawall.cluster.judge.node_death import WorkloadKey
from seawall.cluster.kube.kube_client import Object, server_version
from seawall.cluster.objects.action_levers import ActionApproval, ActionLever
from seawall.cluster.objects.api_group import WORKLOAD_QUARANTINE, path_of
from seawall.cluster.objects.object_fields import clean, word_of
from seawall.cluster.objects.seawall_policy_object import SeawallPolicyObject
from seawall.cluster.objects.workload_quarantine_object import (
    QuarantineMode,
    QuarantineState,
    WorkloadQuarantineObject,
    quarantine_name,
)
from seawall.cluster.pages.cluster_act_page import ActName, ClusterActPage
from seawall.cluster.pages.cluster_words import clock
from seawall.cluster.pages.quarantine_words import GATES_SINCE, admission_words
from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem
from seawall.words import counted, duration, first

SCALED: Final = ("Deployment", "StatefulSet", "ReplicaSet")
_STOPPING: Final = (QuarantineMode.GATE, QuarantineMode.SUSPEND)
_KIND: Final = WORKLOAD_QUARANTINE.kind
_REASON_LETTERS: Final = 512


class QuarantineWish(NamedTuple):
    """What the person typed."""

    mode: QuarantineMode | None
    """None: the workload's own switch where it has one, else new pods wait."""
    seconds: float
    reason: str
    is_agreed: bool
    """``--yes``: pods may be deleted."""


def quarantine(desk: ActDesk, words: str, wish: QuarantineWish) -> ClusterActPage:
    """Make a quarantine, or make the observer's one active.  UsageProblem, KubeProblem."""
    rows = quarantines(desk)
    known = quarantine_named(rows, words)
    if known is not None and words == known.name:
        workload = known.workload
        words = f"{workload.namespace}/{workload.kind}/{workload.name}"
    policy = policy_of(desk)
    _refuse_protected(workload_name_of(words).namespace, policy)
    target = read_target(desk.client, words)
    mode = wish.mode or default_mode(target.name.kind, policy, target.name.namespace)
    same = list(quarantines_of(rows, target.name))
    outlook = _Outlook(desk, policy, mode, target.name.kind, target.name.namespace,
                       len(target.pods), target.nodes)  # fmt: skip
    if target.unseen:
        desk.unseen.append(NotSeen("its pods", target.unseen, "get and list pods"))
    open_one = next((one for one in same if one.state is not QuarantineState.RELEASED), None)
    name = open_one.name if open_one else quarantine_name(
        target.name.namespace, target.name.name, WorkloadKey(1, target.uid)
    )  # fmt: skip
    is_blocked = outlook.deletes and not wish.is_agreed
    if is_blocked and not desk.is_dry_run:
        return _page(desk, "quarantine", name, _headline(target, mode, wish, desk), outlook,
                     is_blocked=True)  # fmt: skip
    by = desk.person()
    spec = _spec(desk, target, mode, wish, by)
    if open_one is None:
        uid = _create(desk, name, spec, [one for one in same if one.name == name], by)
    else:
        uid = _activate(desk, open_one, {key: spec[key] for key in _CHANGED}, by)
    if uid is not None:
        desk.tell(_events(name, uid, target, f"mode {mode.value}: {spec['reason']}", mode))
    return _page(desk, "quarantine", name, _headline(target, mode, wish, desk), outlook)


def approve(
    desk: ActDesk, words: str, mode: QuarantineMode | None, *, is_agreed: bool
) -> ClusterActPage:
    """Say that what the observer proposes may be done.  UsageProblem, KubeProblem."""
    rows = quarantines(desk)
    one = quarantine_named(rows, words)
    if one is None:
        raise UsageProblem(
            f"no quarantine {words!r}: seawall cluster suspects lists them; of a workload that "
            "nobody suspects: seawall cluster quarantine NAMESPACE/KIND/NAME"
        )
    if one.state is QuarantineState.RELEASED:
        raise UsageProblem(
            f"{one.name} was released, and a state moves forward only: seawall cluster quarantine "
            f"{one.workload.namespace}/{one.workload.kind.lower()}/{one.workload.name}"
        )
    policy = policy_of(desk)
    _refuse_protected(one.match.namespace, policy)
    pods, unseen = living_pods(desk.client, one.match)
    if unseen:
        desk.unseen.append(NotSeen("its pods", unseen, "get and list pods"))
    nodes = tuple(sorted({str((pod.get("spec") or {}).get("nodeName") or "") for pod in pods}
                         - {""}))  # fmt: skip
    wanted = mode or one.mode
    if wanted is QuarantineMode.TELL:
        wanted = default_mode(one.workload.kind, policy, one.match.namespace)
    outlook = _Outlook(desk, policy, wanted, one.workload.kind, one.match.namespace, len(pods),
                       nodes)  # fmt: skip
    headline = f"approve {one.name}: {one.workload}, mode {wanted.value}"
    if outlook.deletes and not is_agreed and not desk.is_dry_run:
        return _page(desk, "approve", one.name, headline, outlook, is_blocked=True)
    by = desk.person()
    changes = {"state": word_of(QuarantineState.ACTIVE), "mode": wanted.value}
    uid = _activate(desk, one, changes, by)
    if uid is not None:
        note = f"approved by {by or 'a person'}: mode {wanted.value}; {one.reason}"
        desk.tell([quarantine_event("QuarantineApproved", note, one.name, uid)])
    return _page(desk, "approve", one.name, headline, outlook)


def default_mode(kind: str, policy: SeawallPolicyObject, namespace: str) -> QuarantineMode:
    """The switch where it has one that may be used, else a gate."""
    levers = policy.actions.levers_in(namespace)
    lever = ActionLever.SCALE_TO_ZERO if kind in SCALED else ActionLever.SUSPEND
    has_switch = changeable_kind(kind) is not None and kind != "Pod"
    return QuarantineMode.SUSPEND if has_switch and lever in levers else QuarantineMode.GATE


_CHANGED: Final = ("state", "mode", "reason", "expiresAt")
"""Of a quarantine that is there: its match cannot be changed."""


def _refuse_protected(namespace: str, policy: SeawallPolicyObject) -> None:
    if namespace in policy.protected_namespaces:
        raise UsageProblem(
            f"namespace {namespace} is protected (spec.protectedNamespaces of the SeawallPolicy): "
            "nothing in it is ever held or stopped"
        )


def _spec(
    desk: ActDesk, target: WorkloadTarget, mode: QuarantineMode, wish: QuarantineWish, by: str
) -> Object:
    one = WorkloadQuarantineObject(
        name="", workload=target.name, key=WorkloadKey(1, target.uid), match=target.match,
        state=QuarantineState.ACTIVE, mode=mode,
        reason=clean(wish.reason, _REASON_LETTERS) or f"by hand, by {by or 'a person'}",
        deaths=(), expires_seconds=desk.now_seconds + wish.seconds,
    )  # fmt: skip
    return one.spec_document()


def _create(
    desk: ActDesk, name: str, spec: Object, released: Iterable[WorkloadQuarantineObject], by: str
) -> str | None:
    """Its uid; None: refused.  One that was released and has its name goes first."""
    path = path_of(WORKLOAD_QUARANTINE, name)
    for one in released:
        words = "it was released, and a state moves forward only"
        if not desk.delete(path, _KIND, one.name, "", words):
            return None
        if desk.is_dry_run:
            desk.plan("create", _KIND, name, "", None, None)
            return ""
    body = {"apiVersion": "seawall.internal/v1alpha1", "kind": _KIND, "metadata": {"name": name},
            "spec": spec}  # fmt: skip
    words = f"state Active, mode {spec['mode']}, {_match_words(spec['match'])}"
    made = desk.create(path_of(WORKLOAD_QUARANTINE), body, words)
    if made is None:
        return None
    if desk.is_dry_run:
        desk.plan("patch", _KIND, name, "/status/approvedBy", None, by)
    else:
        status = {"status": {"approvedBy": by}}
        desk.merge(path_of(WORKLOAD_QUARANTINE, name, status=True), _KIND, name, status)
    return str((made.get("metadata") or {}).get("uid", ""))


def _activate(desk: ActDesk, one: WorkloadQuarantineObject, changes: Object, by: str) -> str | None:
    """Its uid; None: refused.  Who approved it is written first: then nobody acts without that."""
    path = path_of(WORKLOAD_QUARANTINE, one.name)
    document = desk.client.get(path)
    status: Object = {"status": {"approvedBy": by}}
    if changes.get("mode") == QuarantineMode.PROBATION.value:
        status["status"]["canary"] = None  # a person's word is what another trial wants
    status_path = path_of(WORKLOAD_QUARANTINE, one.name, status=True)
    if not desk.merge(status_path, _KIND, one.name, status, before=document):
        return None
    if not desk.merge(path, _KIND, one.name, {"spec": changes}, before=document):
        return None
    return str((document.get("metadata") or {}).get("uid", ""))


def _match_words(match: Any) -> str:
    fields = ((name, value) for name, value in match.items() if value)
    parts = [
        f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in fields
        if name not in ("namespace", "labels")
    ]
    parts += [f"label {name}={value}" for name, value in (match.get("labels") or {}).items()]
    return f"matches pods of {match['namespace']} with {first(parts, 3)}"


def _events(
    name: str, uid: str, target: WorkloadTarget, note: str, mode: QuarantineMode
) -> Iterator[ActEvent]:
    reason, is_warning = "QuarantineStarted", mode is not QuarantineMode.TELL
    yield quarantine_event(reason, note, name, uid)
    told = f"{note} (seawall cluster why {target.name.namespace}/{target.name.name})"
    workload = target.name
    yield ActEvent(reason, told, workload.kind, target.api_version, workload.name, target.uid,
                   workload.namespace, is_warning)  # fmt: skip
    if workload.kind == "Pod":
        return
    for pod in target.pods[:PODS_MOST]:
        metadata = pod.get("metadata") or {}
        yield ActEvent(reason, told, "Pod", "v1", str(metadata.get("name", "")),
                       str(metadata.get("uid", "")), workload.namespace, is_warning)  # fmt: skip


def _headline(
    target: WorkloadTarget, mode: QuarantineMode, wish: QuarantineWish, desk: ActDesk
) -> str:
    until = clock(desk.now_seconds + wish.seconds, desk.now_seconds)
    pods = counted(len(target.pods), "living pod")
    nodes = f" on {counted(len(target.nodes), 'node')}" if target.nodes else ""
    return (
        f"quarantine {target.name}: {pods}{nodes}; mode {mode.value} for "
        f"{duration(wish.seconds)} (until {until})"
    )


class _Outlook:
    """What the actor will do of it, by the policy as it stands."""

    def __init__(
        self, desk: ActDesk, policy: SeawallPolicyObject, mode: QuarantineMode, kind: str,
        namespace: str, pods: int, nodes: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._desk, self._policy, self._mode, self._kind = desk, policy, mode, kind
        self._pods, self._nodes = pods, nodes
        self._namespace = namespace
        self._actor, self._observer = actor_state(desk), observer_state(desk)
        self._levers = policy.actions.levers_in(namespace)
        switch = ActionLever.SCALE_TO_ZERO if kind in SCALED else ActionLever.SUSPEND
        has_switch = changeable_kind(kind) is not None and kind != "Pod"
        self._is_switched = mode is QuarantineMode.SUSPEND and has_switch and switch in self._levers
        is_stopping = mode in _STOPPING and ActionLever.STOP_COPIES in self._levers
        self.deletes = pods > 0 and (is_stopping or self._is_switched)
        """Living pods go, which cannot be undone."""

    def lost(self) -> tuple[str, ...]:
        """What cannot be undone."""
        if not self.deletes:
            return ()
        nodes = f" on {first(self._nodes, 3)}" if self._nodes else ""
        pods = counted(self._pods, "living pod")
        when = "" if self._is_carried_out() else "once an actor acts, "
        return (f"{when}{pods}{nodes} are deleted: what they have not saved is lost",)

    def _is_carried_out(self) -> bool:
        is_off = self._policy.brake or self._policy.actions.dry_run
        return self._actor.state == "acts" and not is_off

    def effects(self) -> Iterator[str]:
        """In the order in which they come."""
        actions = self._policy.actions
        if self._actor.state != "acts":
            yield f"NOBODY CARRIES IT OUT: {self._actor.words}; it is only written down"
        elif self._policy.brake:
            yield "NOTHING until the brake is off: seawall cluster brake --off"
        elif actions.dry_run:
            yield "the actor only tells what it would do (spec.actions.dryRun of the policy)"
        elif actions.approval_in(self._namespace) is ActionApproval.OBSERVE:
            yield f"the policy says observe for {self._namespace}: the actor does nothing"
        if self._actor.state == "acts" and self._observer.state == "nobody":
            yield f"{self._observer.words}: the actor's fences hear of it from that alone"
        yield from self._by_mode()

    def _by_mode(self) -> Iterator[str]:
        mode = self._mode
        if mode is QuarantineMode.TELL:
            yield "nothing is done to it: it is only told"
            return
        if ActionLever.HOLD in self._levers:
            yield "its pods on silent nodes stay there for 30 min: no copies elsewhere meanwhile"
        lever = {
            QuarantineMode.PROBATION: ActionLever.PROBATION, QuarantineMode.GATE: ActionLever.GATE,
        }.get(mode)  # fmt: skip
        if lever is not None and lever not in self._levers:
            yield f"not {mode.value}: this lever is switched off in the policy"
            return
        version = server_version(self._desk.client)
        yield from admission_words(mode, version)
        if mode is QuarantineMode.PROBATION and version is not None and version >= GATES_SINCE:
            seconds = self._policy.actions.canary_seconds
            yield f"one of them is tried first, for {duration(seconds)}; the others wait"
        if mode is QuarantineMode.SUSPEND:
            yield self._switch_words()

    def _switch_words(self) -> str:
        if self._is_switched:
            field = "replicas go to 0" if self._kind in SCALED else "is suspended"
            return f"the {self._kind} {field}; its value is kept on it"
        if self._kind in SCALED:
            return f"nothing: a {self._kind} has no switch; the lever scaleToZero is off here"
        return f"nothing: of a {self._kind} no switch may be used here"


def _page(
    desk: ActDesk, act: ActName, name: str, headline: str, outlook: _Outlook, *,
    is_blocked: bool = False,
) -> ClusterActPage:  # fmt: skip
    return ClusterActPage(
        act=act, source=desk.source, as_of_unix_seconds=desk.now_seconds, subject=name,
        headline=headline, is_dry_run=desk.is_dry_run,
        outcome="needs yes" if is_blocked else desk.outcome,
        steps=tuple(desk.steps), effects=tuple(outlook.effects()), lost=outlook.lost(),
        commands=(f"seawall cluster release {name}",), is_taken_back=True,
        unseen=tuple(desk.unseen),
    )  # fmt: skip
