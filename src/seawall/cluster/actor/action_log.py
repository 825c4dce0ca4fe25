# SPDX-License-Identifier: Apache-2.0
"""What a quarantine's status says was done, line by line.  Pure.

The list is short: what is done to owners stays in it, lines about pods make room for newer ones.
"""

from dataclasses import replace
from typing import Final

from seawall.cluster.objects.action_levers import ActionResult
from seawall.cluster.objects.quarantine_actions import (
    ACTIONS_MOST,
    ActorStatus,
    QuarantineAction,
)

_TRANSIENT: Final = (ActionResult.DRY_RUN.value, ActionResult.REFUSED.value)


def with_action(status: ActorStatus, action: QuarantineAction) -> ActorStatus:
    """With one more; the same again changes nothing."""
    if any(_same(one, action) for one in status.actions):
        return status
    rows = []
    for one in status.actions:
        is_step = one.result == action.result == ActionResult.DONE.value
        is_over = one.result in _TRANSIENT or (is_step and one.undone_seconds is None)
        if not is_over or _place(one) != _place(action):
            rows.append(one)
        elif is_step:  # a later step of the same change: what was there before both stands
            action = replace(action, before=one.before)
    rows.append(action)
    while len(rows) > ACTIONS_MOST:
        oldest = next((one for one in rows if one.kind == "Pod"), rows[0])
        rows.remove(oldest)
    return replace(status, actions=tuple(rows))


def with_undone(
    status: ActorStatus, uid: str, path: str, at_seconds: float, problem: str = ""
) -> ActorStatus:
    """That the field has its old value again, or why it has not."""
    return replace(
        status,
        actions=tuple(
            replace(one, undone_seconds=at_seconds, problem=problem or one.problem,
                    result=one.result if problem else ActionResult.UNDONE.value)
            if one.uid == uid and one.path == path and one.undone_seconds is None
            and one.result not in _TRANSIENT
            else one
            for one in status.actions
        ),
    )  # fmt: skip


def _place(one: QuarantineAction) -> tuple[str, str, str]:
    return one.lever, one.uid, one.path


def _same(one: QuarantineAction, other: QuarantineAction) -> bool:
    return (
        _place(one) == _place(other) and one.result == other.result
        and one.problem == other.problem and one.undone_seconds is None
        and (one.after == other.after or one.result in _TRANSIENT)
    )  # fmt: skip
