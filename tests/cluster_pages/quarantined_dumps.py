"""Dumps in which somebody has acted: the judge's own verdict, and what was done in its name."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.cluster_pages.cluster_dumps import POLICY, START, dump, hog_deaths, judged

from seawall.cluster.objects.api_time import time_words
from seawall.cluster.objects.policy_actions import PolicyActions, TrippedBrake
from seawall.cluster.objects.quarantine_actions import (
    ActorStatus,
    QuarantineAction,
    QuarantineCanary,
)
from seawall.cluster.objects.seawall_policy_object import SeawallPolicyObject
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

NOW_MINUTES = 16.0
NOW = START + NOW_MINUTES * 60.0


def action(lever: str, name: str = "trainer-1", *, kind: str = "Pod", result: str = "done",
           minutes: float = 15.0, **more: Any) -> QuarantineAction:  # fmt: skip
    return QuarantineAction(lever, kind, "ml", name, f"uid-{name}", START + minutes * 60.0, result,
                            **more)  # fmt: skip


def acted_dump(
    actions: Sequence[QuarantineAction] = (), *, state: QuarantineState = QuarantineState.ACTIVE,
    mode: QuarantineMode = QuarantineMode.SUSPEND, approved_by: str = "alice",
    policy: PolicyActions | None = None, brake: bool = False, has_actor: bool = True,
    tripped: tuple[TrippedBrake, ...] = (), canary: QuarantineCanary | None = None,
) -> dict[str, Any]:  # fmt: skip
    deaths = hog_deaths()
    whole = dump(deaths, renewed_minutes=NOW_MINUTES, with_suspects=False)
    _, quarantines = judged(deaths, POLICY, START - 30 * 86400.0)
    for one in quarantines:
        if one.workload.name == "trainer":
            said = ActorStatus(tuple(actions), approved_by, canary)
            one = replace(one, state=state, mode=mode, actor_status=said)
        whole["items"].append(one.document())
    own = SeawallPolicyObject(
        actions=policy or PolicyActions(dry_run=False), brake=brake, tripped=tripped
    )
    spec = own.spec_document()
    whole["items"][0]["spec"] |= {"actions": spec["actions"], "brake": brake}
    whole["items"][0]["status"]["brakes"] = [one.document() for one in tripped]
    if has_actor:
        whole["items"].append({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "seawall-actor", "namespace": "seawall"},
            "spec": {"holderIdentity": "seawall-actor-1", "renewTime": time_words(NOW)},
        })  # fmt: skip
    return whole
