# SPDX-License-Identifier: Apache-2.0
"""Recreating a pod through the cluster's API, with credentials that the person gives.

kubectl get and delete --raw: the pod is deleted by its uid (DeleteOptions.preconditions), so that
one which came again under its name is left alone.  No process of a tenant is ever ended here.
"""

import json
import os
import re
import time
from typing import Any, Final, NamedTuple

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices
from seawall.accounts.devices.repairs.removal_commands import delete_pod
from seawall.accounts.workloads import Workload, Workloads
from seawall.actions.device_repairs.repair_run import RepairRun, RepairStepOutcome
from seawall.host.host import Unread
from seawall.host.own_commands import find, run

EVERY_SECONDS: Final = 1.0
_CALL_SECONDS: Final = 30.0
_ORDINAL: Final = re.compile(r"-[0-9]+\Z")


def recreate(repair: RepairRun, workload: Workload) -> RepairStepOutcome:
    """Delete the pod, wait for its next one on this node, try that one's devices."""
    elsewhere = delete_pod(workload)
    if not elsewhere:
        return RepairStepOutcome(
            "refused", "its name is none of a pod: it is not put into a command"
        )
    tool = find("kubectl")
    if tool is None or not (repair.kubeconfig or os.environ.get("KUBECONFIG")):
        lack = "kubectl is not installed here" if tool is None else "no credentials: --kubeconfig"
        return RepairStepOutcome("refused", f"{lack}; where there are, type: {elsewhere}")
    call = _Call(repair, tool, workload)
    owners = _owners(call.get(), workload)
    if isinstance(owners, str):
        return RepairStepOutcome("refused", f"{owners}; nothing was deleted")
    if not (before := _pods(repair)):
        return RepairStepOutcome("refused", "which pods run here was not seen; nothing was deleted")
    if (failed := call.delete(_uid(workload))) is not None:
        return RepairStepOutcome("failed", failed)
    return _wait(repair, _Deleted(workload, owners, before | {_uid(workload)}, tool))


class _Call:
    """Of one pod's address."""

    def __init__(self, repair: RepairRun, tool: str, workload: Workload) -> None:
        """``workload``: one whose names are a pod's."""
        self._repair = repair
        self._tool = tool
        # $KUBECONFIG, which may name several, kubectl reads itself.
        self._words = ["--kubeconfig", repair.kubeconfig] if repair.kubeconfig else []
        self._path = f"/api/v1/namespaces/{workload.namespace}/pods/{workload.pod}"

    def get(self) -> dict[str, Any] | str:
        """The pod, or why there is no answer."""
        ran = self._run(["get", "--raw", self._path], b"")
        if ran[0] is None:
            return ran[1]
        try:
            found = json.loads(ran[0])
        except (ValueError, RecursionError):
            return "kubectl's answer is no JSON"
        return found if isinstance(found, dict) else "kubectl's answer is no object"

    def delete(self, uid: str) -> str | None:
        """None: it is done; else why not."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
        ran = self._run(["delete", "--raw", self._path, "-f", "-"], json.dumps(options).encode())
        return None if ran[0] is not None else ran[1]

    def _run(self, words: list[str], given: bytes) -> tuple[str | None, str]:
        shown = f" <<< '{given.decode()}'" if given else ""
        self._repair.say(f"runs: kubectl {' '.join([*self._words, *words])}{shown}")
        seconds = min(_CALL_SECONDS, self._repair.seconds_left())
        ran = run([self._tool, *self._words, *words], seconds, given)
        return (ran.out, "") if ran.status == 0 else (None, f"kubectl: {ran.words}")


def _owners(pod: dict[str, Any] | str, workload: Workload) -> set[str] | str:
    """Uids of who makes such pods, or why there are none: no answer, another pod of that name, one
    that would not come back.
    """
    if isinstance(pod, str):
        return pod
    told = pod.get("metadata")
    meta = told if isinstance(told, dict) else {}
    if meta.get("uid") != _uid(workload):
        return f"the pod of that name is another one by now: its uid is not {_uid(workload)}"
    owners = meta.get("ownerReferences")
    if not owners or not isinstance(owners, list):
        return "the pod has no owner, so nobody would make it anew: delete and create it yourself"
    uids = [one.get("uid") for one in owners if isinstance(one, dict)]
    return {uid for uid in uids if isinstance(uid, str) and uid}


def _uid(workload: Workload) -> str:
    """Its uid: systemd's unit names write - as _."""
    return (workload.pod_uid or "").replace("_", "-")


# --- the next one -----------------------------------------------------------------------


class _Deleted(NamedTuple):
    """What is waited for the next one of."""

    workload: Workload
    owners: set[str]
    before: set[str]
    """Uids of the pods that ran then: none of them is the next one."""
    tool: str


def _pods(repair: RepairRun) -> set[str]:
    """Uids of those of this moment; empty: not seen."""
    found = repair.look().get(Workloads)
    known = () if isinstance(found, Unread) else found.by_cgroup.values()
    return {_uid(one) for one in known if one.pod_uid is not None}


def _wait(repair: RepairRun, gone: _Deleted) -> RepairStepOutcome:
    repair.say("waits for the pod to come again on this node")
    words = "it did not come again on this node: try it where it runs: seawall gpu"
    asked: dict[str, bool] = {}
    while time.monotonic() < repair.until:
        table = repair.look().get(DeviceTable)
        for one in () if isinstance(table, Unread) else table.containers:
            if not _follows(one.workload, gone):
                continue
            uid = _uid(one.workload)
            if uid not in asked:
                asked[uid] = _is_its(repair, one.workload, gone)
            if asked[uid] and one.works:
                words = f"tried: {one.workload.name} can use what it was promised"
                return RepairStepOutcome("done", words, is_verified=True)
            words = _not_yet(one) if asked[uid] else words
        time.sleep(EVERY_SECONDS)
    return RepairStepOutcome("done", f"the pod was deleted; not verified: {words}")


def _follows(new: Workload, gone: _Deleted) -> bool:
    """By its names, and no pod of before: a Deployment's and a Job's differ in the last part."""
    old = gone.workload
    if (new.namespace, new.container) != (old.namespace, old.container):
        return False
    if new.pod_uid is None or _uid(new) in gone.before or not delete_pod(new):
        return False
    if new.pod == old.pod:
        return True
    stem, its = (old.pod or "").rpartition("-")[0], (new.pod or "").rpartition("-")[0]
    return bool(stem) and stem == its and not _ORDINAL.search(old.pod or "")


def _is_its(repair: RepairRun, new: Workload, gone: _Deleted) -> bool:
    """Another name may be somebody else's pod: whoever made the old one made this one too."""
    if new.pod == gone.workload.pod:
        return True
    owners = _owners(_Call(repair, gone.tool, new).get(), new)
    return not isinstance(owners, str) and bool(owners & gone.owners)


def _not_yet(one: ContainerDevices) -> str:
    if one.diagnosis is None:
        return f"{one.workload.name} could not be tried yet"
    return f"{one.workload.name}: {one.diagnosis.mode}: {one.diagnosis.headline}"
