# SPDX-License-Identifier: Apache-2.0
"""Bodies of the agent's requests: conditions, an Event, a NodeReport.  Pure; all ASCII, bounded."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from seawall.agent.culprits import Culprit
from seawall.agent.guard_page import GuardPage
from seawall.agent.node_conditions import NodeCondition
from seawall.cluster.objects.api_group import API_VERSION, GROUP, NODE_REPORT
from seawall.guard.tell.plain import plain

REPORT_MOST_BYTES: Final = 16 << 10
_NOTE_MOST: Final = 1000
"""events.k8s.io/v1 takes 1 KiB of it."""
_DECISION_MOST: Final = 512


def api_time(unix_seconds: float) -> str:
    """RFC 3339 in UTC with microseconds, as MicroTime wants it."""
    whole = int(unix_seconds // 1)
    micro = int((unix_seconds - whole) * 1e6)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{micro:06d}Z"


def conditions_body(
    conditions: Sequence[NodeCondition], since: Mapping[str, float], now_unix_seconds: float
) -> bytes:
    """A strategic merge patch of nodes/NAME/status: conditions are merged by their type.
    ``since``: Unix seconds of each one's last change.
    """
    stamp = api_time(now_unix_seconds)[:19] + "Z"  # metav1.Time has no fraction
    rows = [
        {
            "type": one.type, "status": one.status, "reason": one.reason,
            "message": plain(one.message, 1024), "lastHeartbeatTime": stamp,
            "lastTransitionTime": api_time(since.get(one.type, now_unix_seconds))[:19] + "Z",
        }
        for one in conditions
    ]  # fmt: skip
    return _json({"status": {"conditions": rows}})


def event_name(node: str, unix_seconds: float, number: int) -> str:
    """Its own, so that one that is sent twice is there once."""
    return f"{node[:200].rstrip('.-')}.{int(unix_seconds * 1e3):x}-{number:x}"


def event_body(
    node: str, name: str, condition: NodeCondition, unix_seconds: float, instance: str
) -> bytes:
    """An Event of events.k8s.io/v1 on the node, in namespace default, as the kubelet's are."""
    return _json({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "eventTime": api_time(unix_seconds), "type": "Warning", "reason": condition.reason,
        "action": "Observe", "note": plain(condition.message, _NOTE_MOST),
        "reportingController": f"{GROUP}/agent",
        "reportingInstance": plain(instance, 128),
        # As the kubelet's: `kubectl describe node` looks for the name as uid, too.
        "regarding": {"apiVersion": "v1", "kind": "Node", "name": node, "uid": node},
    })  # fmt: skip


def report_body(node: str, report: Mapping[str, Any]) -> bytes:
    """The whole NodeReport for a server-side apply, cut to REPORT_MOST_BYTES: first samples go,
    then lines of the record, then words.
    """
    report = dict(report)
    while True:
        body = _json({
            "apiVersion": API_VERSION, "kind": NODE_REPORT.kind, "metadata": {"name": node},
            "spec": {"nodeName": node}, "report": report,
        })  # fmt: skip
        if len(body) <= REPORT_MOST_BYTES or not _is_cut(report):
            return body


def _is_cut(report: dict[str, Any]) -> bool:
    last = report.get("lastDeath")
    if not isinstance(last, dict):
        return False
    for key in ("samples", "record"):
        if last.get(key):
            report["lastDeath"] = {**last, key: last[key][: len(last[key]) // 2]}
            return True
    return False


def guard_part(page: GuardPage | None) -> dict[str, Any]:
    """What is known of the guard; of a silent one nothing else is."""
    if page is None:
        return {"state": "silent"}
    return {
        "version": page.version, "mode": page.mode, "canKill": page.can_kill, "state": page.state,
        "brake": page.is_braked, "takesRescue": page.takes_rescue,
    }  # fmt: skip


def distress_part(page: GuardPage, culprits: Sequence[Culprit]) -> dict[str, Any]:
    """Numbers that could not be read are left out."""
    known = {
        "headroomBytes": page.headroom_bytes,
        "headroomSeconds": None if page.headroom_seconds is None
        else round(page.headroom_seconds, 1),
        "uncountedBytes": page.uncounted_bytes,
    }  # fmt: skip
    part: dict[str, Any] = {"at": api_time(page.unix_seconds)}
    part |= {key: value for key, value in known.items() if value is not None}
    part["culprits"] = [one.document() for one in culprits]
    if page.last is not None and page.last.trigger == "node_short":
        words = f"{page.last.decision} {page.last.how}: {page.last.sentence}"
        part["decision"] = plain(words, _DECISION_MOST)
    return part


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
