# SPDX-License-Identifier: Apache-2.0
"""Which dead nodes may still say what they died of, and how long that is waited for.  Pure.

An agent that is well and whose node runs short of memory says so.  One that said nothing was on a
node that was well until its last moment: people power-cycle those.  Such a node is back in minutes,
and its black box says what happened; until then its death makes suspects and convicts nobody.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from seawall.cluster.objects.api_group import AGENT_ACCOUNT
from seawall.cluster.objects.node_death_object import DeathPhase, NodeDeathObject
from seawall.cluster.objects.node_report_object import NodeReportObject
from seawall.cluster.observer.node_life import NodeLifeEvent
from seawall.cluster.observer.pod_rows import NodePod
from seawall.cluster.observer.record_evidence import DISTRESS_SECONDS

AWAITED_SECONDS: Final = 900.0
"""A large machine boots in ten minutes; the agent speaks a minute later."""


def has_agent(pods: Iterable[NodePod], namespace: str) -> bool:
    """Whether the agent ran there: a tenant may take its name, but not in our namespace."""
    return any(
        pod.namespace == namespace
        and pod.identity.service_account == AGENT_ACCOUNT
        and pod.phase == "Running"
        for pod in pods
    )


def has_spoken(
    report: NodeReportObject | None, received_seconds: float, event: NodeLifeEvent
) -> bool:
    """Whether the node said before its end that memory ran short; of whom does not matter."""
    return (
        report is not None
        and report.boot_id == event.row.boot_id
        and report.distress is not None
        and received_seconds >= event.heartbeat_seconds - DISTRESS_SECONDS
    )


def with_wait(death: NodeDeathObject, event: NodeLifeEvent) -> NodeDeathObject:
    """Of a node with an agent that has not spoken.  A kubelet that said NotReady is a word too."""
    if not event.was_ready or death.record is not None or not death.counts:
        return death
    return replace(death, awaited_until_seconds=death.observed_seconds + AWAITED_SECONDS)


def overdue(deaths: Iterable[NodeDeathObject], now_seconds: float) -> list[NodeDeathObject]:
    """Whose record did not come in time; each as it is to stand from now on."""
    return [
        replace(one, awaited_until_seconds=None)
        for one in deaths
        if one.counts
        and one.awaited_until_seconds is not None
        and (one.awaited_until_seconds <= now_seconds or one.phase is DeathPhase.EXPLAINED)
    ]
