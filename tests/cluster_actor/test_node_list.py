"""Which pods a quarantine names to their nodes, and when it names none."""

from dataclasses import replace

import pytest
from tests.cluster_actor.families import family, pod, quarantine

from seawall.cluster.actor.node_list import pods_for_nodes
from seawall.cluster.objects.action_levers import LEVERS_BY_DEFAULT, ActionLever
from seawall.cluster.objects.policy_actions import ActionBrakes, PolicyActions
from seawall.cluster.objects.quarantine_actions import ActorStatus
from seawall.cluster.objects.workload_quarantine_object import QuarantineMode, QuarantineState

ACTING = PolicyActions(dry_run=False)
PODS = (pod(1, "n-1"), replace(pod(2, "n-2"), is_ending=True))
OTHERS = (replace(pod(3, "n-3"), phase="Succeeded"), replace(pod(4, "n-4"), node=""),
          replace(pod(5, "n-5"), is_untouchable="static pod"))  # fmt: skip


def nodes_of(state: QuarantineState, mode: QuarantineMode, actions: PolicyActions) -> list[str]:
    found = pods_for_nodes(quarantine(state, mode), family(*PODS, *OTHERS), actions)
    return sorted(one.node for one in found)


@pytest.mark.parametrize("mode", QuarantineMode)
@pytest.mark.parametrize("state", QuarantineState)
def test_they_are_named_where_copies_may_not_run(
    state: QuarantineState, mode: QuarantineMode
) -> None:
    is_stopping = state is QuarantineState.ACTIVE and mode.value in {"gate", "suspend"}
    assert nodes_of(state, mode, ACTING) == (["n-1", "n-2"] if is_stopping else [])


def test_none_is_named_in_a_dry_run_or_where_copies_are_not_stopped() -> None:
    state, mode = QuarantineState.ACTIVE, QuarantineMode.GATE
    assert nodes_of(state, mode, PolicyActions()) == []
    levers = LEVERS_BY_DEFAULT - {ActionLever.STOP_COPIES}
    assert nodes_of(state, mode, replace(ACTING, levers=levers)) == []


def test_of_a_wide_job_none_is_named_before_a_person_approved() -> None:
    narrow = replace(ACTING, brakes=ActionBrakes(approval_above_nodes=1))
    one = quarantine(QuarantineState.ACTIVE, QuarantineMode.GATE)
    assert pods_for_nodes(one, family(*PODS), narrow) == ()
    approved = replace(one, object=replace(one.object, actor_status=ActorStatus(approved_by="ada")))
    assert len(pods_for_nodes(approved, family(*PODS), narrow)) == 2
