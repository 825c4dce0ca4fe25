# SPDX-License-Identifier: Apache-2.0
"""Pods that may not run on this node: ended when they start, where the node's own file allows it.

A pod's uid is its own for good: a node that reboots in place finds the pod that killed it under the
same one.  Scope, protection and cool-down hold as ever, and one kill of a minute is always left for
a shortage.
"""

from collections.abc import Mapping

from seawall.actions.orders import Order, Target
from seawall.guard.judge import sentences
from seawall.guard.judge.cooldown import tenant_of
from seawall.guard.judge.policy_state import DONE, OBSERVED, PolicyState
from seawall.guard.tick_facts import NOT_TOLD, Group, Node
from seawall.guard.verdict import Verdict
from seawall.role_claims import NOT_NAMED

NOT_ALLOWED = "this guard's file does not say quarantine = true"


def judge_quarantined(
    state: PolicyState, node: Node, groups: Mapping[str, Group], pods: Mapping[str, str]
) -> Verdict | None:  # fmt: skip
    """The first of them that runs and was not decided on; ``pods``: uid to quarantine."""
    for group in groups.values():
        if not group.pod or group.pod not in pods or group.processes == 0:
            continue
        if state.hold.why_done(group) or group.protected_by in (NOT_TOLD, NOT_NAMED):
            continue
        verdict = _judge(state, node, group, pods[group.pod])
        if verdict is not None:
            return verdict
    return None


def _judge(state: PolicyState, node: Node, group: Group, quarantine: str) -> Verdict | None:
    name = sentences.plain(group.name)
    said = f"{name} is in quarantine ({quarantine}) and may not run on this node"
    may = state.is_observing or state.settings.quarantine
    against = state.protection.reason(group) or ("" if may else NOT_ALLOWED)
    if against:
        if not state.hold.bar(group, against):
            return None
        return state.verdict(
            state.next_decision(), node, "quarantined", refused=against,
            sentence=f"{said}. Nothing is done: {against}",
        )  # fmt: skip
    is_spent = state.hold.kills_left(node.seconds, state.settings.kills_per_minute) <= 1
    if is_spent and not state.is_observing:
        return None
    decision = state.next_decision()
    why = OBSERVED if state.is_observing else DONE
    state.hold.mark_done(group.path, group.inode, f"{why} ({decision}): never twice")
    if not state.is_observing:
        state.hold.count_kills(node.seconds, 1, (tenant_of(group),))
    target = Target(group.path, group.inode, name)
    order = Order(decision, "kill", target, "quarantined", group.hard_bytes)
    what = "it would be killed" if state.is_observing else "it is killed"
    return state.verdict(
        decision, node, "quarantined", orders=(order,), sentence=f"{said}: {what}, as a whole"
    )
