# SPDX-License-Identifier: Apache-2.0
"""``seawall cluster why|suspects|deaths|replay --json``."""

import json
from enum import Enum
from typing import Final

from seawall.cluster.judge.node_death import NodeLoads
from seawall.cluster.objects.node_death_object import DeathWorkload, NodeDeathObject
from seawall.cluster.objects.node_report_object import NodeReportObject
from seawall.cluster.objects.quarantine_actions import QuarantineAction, QuarantineCanary
from seawall.cluster.objects.record_line import RecordLine
from seawall.cluster.objects.workload_quarantine_object import WorkloadQuarantineObject
from seawall.cluster.pages.cluster_reading import ObserverWatch, moved_seconds
from seawall.cluster.pages.cluster_replay_page import (
    ClusterReplayPage,
    ReplayState,
    ReplayVerdict,
)
from seawall.cluster.pages.cluster_tables import (
    ClusterDeathsPage,
    ClusterSuspectsPage,
    SuspectLine,
)
from seawall.cluster.pages.cluster_why_page import ClusterWhyPage
from seawall.views.document import taken_at
from seawall.views.documents.document_fields import Document, Shapes, shown, spread


def word(value: Enum) -> str:
    """In lower case"""
    return str(value.value)


def moved_at(death: NodeDeathObject) -> str | None:
    """When the node's pods are moved to other nodes: RFC 3339, UTC"""
    return taken_at(moved_seconds(death))


def before(action: QuarantineAction) -> str | None:
    """The field's value before, as JSON; null: there was none"""
    return None if action.before is None else json.dumps(action.before, sort_keys=True)


def after(action: QuarantineAction) -> str | None:
    """The field's value after, as JSON; null: there is none"""
    return None if action.after is None else json.dumps(action.after, sort_keys=True)


_SHAPES: Final[Shapes] = {
    ObserverWatch: shown("state words holder:filled renewed_at=renewed_seconds:time"),
    WorkloadQuarantineObject: (
        *shown("name namespace=workload.namespace workload_kind=workload.kind"),
        *shown("workload_name=workload.name key_level=key.level key_value=key.value"),
        *shown("state mode", turn=word),
        *shown("verdict=status.verdict", turn=word),
        *shown("reason:filled why_not=status.why_not:filled deaths"),
        *shown("score_log10 threshold_log10 false_per_thousand_node_years", of="status"),
        *shown("nodes proved companions chance", of="status"),
        *shown("named_at=named_seconds:time named_after_seconds", of="status"),
        *shown("expires_at=expires_seconds:time"),
        *shown("approved_by=actor_status.approved_by:filled actions=actor_status.actions"),
        *shown("canary=actor_status.canary"),
    ),
    QuarantineAction: (
        *shown("lever kind namespace name uid at=at_seconds:time result path:filled"),
        *shown(before, after),
        *shown("undone_at=undone_seconds:time problem:filled"),
    ),
    QuarantineCanary: shown("pod node:filled since=since_seconds:time verdict:filled"),
    NodeDeathObject: (
        *shown("name node"),
        *shown("kind phase cause confidence", turn=word),
        *shown("reason:filled heartbeat_at=heartbeat_seconds:time"),
        *shown("observed_at=observed_seconds:time", moved_at),
        *shown("culprit record stratum stratum_nodes domain:filled"),
        *shown("record_awaited_until=awaited_until_seconds:time has_agent loads"),
        *shown("workloads unseen"),
    ),
    DeathWorkload: (
        *shown("pod namespace keys nodes is_static", of="bound"),
        *shown("pod_name owner_kind owner_name"),
    ),
    NodeLoads: shown("dead living sample"),
    RecordLine: (*shown("kind", turn=word), *shown("text source at=at_seconds:time pods")),
    NodeReportObject: (
        *shown("node at=at_seconds:time"),
        *shown("mode can_kill state", of="guard"),
        *shown("distress_at=at_seconds:time headroom_bytes headroom_seconds", of="distress"),
        *shown("uncounted_bytes decision", of="distress"),
    ),
}
_TOP: Final = (
    "as_of=as_of_unix_seconds:time source=reading.source watch=reading.watch actor=reading.actor"
)

WHY: Final = Document(
    name="cluster-why",
    verb="seawall cluster why --json",
    about="Which workload kills nodes of a cluster, or what is known of one node or workload.",
    is_of_host=False,
    pages=(ClusterWhyPage,),
    shapes={
        **_SHAPES,
        ClusterWhyPage: (
            *shown(_TOP, "subject:filled answer headline suspect others deaths report"),
            *shown("done:filled outlook commands could_not_see=unseen"),
        ),
    },
)  # fmt: skip

SUSPECTS: Final = Document(
    name="cluster-suspects",
    verb="seawall cluster suspects --json",
    about="The workloads that are suspected of killing nodes, worst first.",
    is_of_host=False,
    pages=(ClusterSuspectsPage,),
    shapes={
        **_SHAPES,
        ClusterSuspectsPage: shown(_TOP, "suspects=rows could_not_see=unseen"),
        SuspectLine: (
            *spread("suspect"), *shown("last_death_at=last_death_unix_seconds:time"),
        ),
    },
)  # fmt: skip

DEATHS: Final = Document(
    name="cluster-deaths",
    verb="seawall cluster deaths --json",
    about="The nodes of a cluster that died, newest first.",
    is_of_host=False,
    pages=(ClusterDeathsPage,),
    shapes={
        **_SHAPES,
        ClusterDeathsPage: shown(_TOP, "deaths=rows could_not_see=unseen"),
    },
)  # fmt: skip

REPLAY: Final = Document(
    name="cluster-replay",
    verb="seawall cluster replay --json",
    about="Recorded deaths of nodes, judged again as then and by another policy.",
    is_of_host=False,
    pages=(ClusterReplayPage,),
    shapes={
        ClusterReplayPage: shown(
            "source deaths_judged deaths_left_out policy other verdicts could_not_see=unseen"
        ),
        ReplayState: (
            *shown("state score_log10 threshold_log10 nodes_until_convicted convicted_by"),
            *shown("convicted_at=convicted_seconds:time why_not:filled"),
        ),
        ReplayVerdict: shown(
            "workload key_level=key.level key_value=key.value recorded then other differs"
        ),
    },
)  # fmt: skip
