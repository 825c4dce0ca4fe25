# SPDX-License-Identifier: Apache-2.0
"""What stands in the cluster before a person does something: quarantines, policy, who acts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from seawall.cluster.acts.act_desk import ActDesk, short
from seawall.cluster.kube.kube_client import KubeRefusal, Object
from seawall.cluster.objects.api_group import (
    API_VERSION,
    CLUSTER_POLICY,
    POLICY_NAME,
    WORKLOAD_QUARANTINE,
    path_of,
)
from seawall.cluster.objects.object_fields import ObjectFields, ObjectProblem
from seawall.cluster.objects.seawall_policy_object import (
    SeawallPolicyObject,
    seawall_policy_object,
)
from seawall.cluster.objects.workload_quarantine_object import (
    WorkloadQuarantineObject,
    workload_quarantine_object,
)
from seawall.cluster.pages.cluster_reading import (
    ACTOR_LEASE,
    OBSERVER_LEASE,
    STALE_SECONDS,
    names_of,
)
from seawall.findings.blindness import NotSeen
from seawall.problems import UsageProblem

_LEASES: Final = "/apis/coordination.k8s.io/v1/leases"


@dataclass(frozen=True, slots=True)
class ActorState:
    """Whether anybody carries out what stands in a quarantine."""

    state: Literal["acts", "nobody", "unknown"]
    words: str


def quarantines(desk: ActDesk, *, is_needed: bool = True) -> dict[str, WorkloadQuarantineObject]:
    """By name; what cannot be read is named as not seen.  UsageProblem: the server has no such
    kind, unless it is not needed.
    """
    try:
        items = desk.client.items(path_of(WORKLOAD_QUARANTINE))
    except KubeRefusal as refusal:
        if is_needed:
            raise UsageProblem(refusal_words(desk.source, refusal)) from None
        words = "the server has none" if refusal.status == 404 else short(refusal)
        desk.unseen.append(NotSeen(WORKLOAD_QUARANTINE.plural, words, ""))
        return {}
    rows = {}
    for item in items:
        try:
            one = workload_quarantine_object(item)
        except ObjectProblem as problem:
            desk.unseen.append(NotSeen("a quarantine", str(problem), ""))
        else:
            rows[one.name] = one
    return rows


def quarantine_named(
    rows: Mapping[str, WorkloadQuarantineObject], words: str
) -> WorkloadQuarantineObject | None:
    """By its own name, or by any way in which people call its workload; one that is still open
    before one that was released.  UsageProblem: several are meant.
    """
    if words in rows:
        return rows[words]
    found = [one for one in rows.values() if words.lower() in {n.lower() for n in names_of(one)}]
    still = [one for one in found if one.state.value != "released"] or found
    if len(still) > 1:
        names = ", ".join(sorted(one.name for one in still)[:5])
        raise UsageProblem(f"{words!r} is several quarantines: {names}")
    return still[0] if still else None


def policy_of(desk: ActDesk) -> SeawallPolicyObject:
    """The one that counts, or its defaults; UsageProblem: it may not be read, or makes no sense."""
    try:
        return seawall_policy_object(desk.client.get(path_of(CLUSTER_POLICY, POLICY_NAME)))
    except KubeRefusal as refusal:
        if refusal.status == 404:
            return SeawallPolicyObject()
        raise UsageProblem(refusal_words(desk.source, refusal)) from None
    except ObjectProblem as problem:
        raise UsageProblem(str(problem)) from None


def actor_state(desk: ActDesk) -> ActorState:
    """By its lease."""
    return _lease_state(desk, ACTOR_LEASE, "actor")


def observer_state(desk: ActDesk) -> ActorState:
    """By its lease: it tells the actor's fences what is in force."""
    return _lease_state(desk, OBSERVER_LEASE, "observer")


def _lease_state(desk: ActDesk, name: str, who: str) -> ActorState:
    try:
        leases = desk.client.items(_LEASES, {"fieldSelector": f"metadata.name={name}"})
    except KubeRefusal as refusal:
        return ActorState("unknown", f"whether an {who} is installed: {short(refusal)}")
    newest = max((_renewed(one) for one in leases), default=0.0)
    if not newest:
        return ActorState("nobody", f"no {who} is installed, or none runs")
    if desk.now_seconds - newest > STALE_SECONDS:
        return ActorState("nobody", f"the {who}'s lease has run out")
    return ActorState("acts", f"an {who} is installed")


def refusal_words(where: str, refusal: KubeRefusal) -> str:
    """For somebody who asked."""
    if refusal.status == 404:
        return f"{where} has no {API_VERSION}: Seawall is not installed there (docs/cluster.md)"
    if refusal.status in (401, 403):
        return f"{where}: you may not do that: {short(refusal)}"
    return f"{where}: {short(refusal)}"


def _renewed(lease: Object) -> float:
    """0: nobody holds it."""
    try:
        spec = ObjectFields(lease, "Lease").fields("spec")
        if spec is None or not spec.text("holderIdentity"):
            return 0.0
        return spec.seconds("renewTime") or 0.0
    except ObjectProblem:
        return 0.0
