"""Which pod is the next one of a pod that was deleted, and that somebody else's is not."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.accounts.device_worlds import workload
from tests.accounts.test_gpu_repair_plans import FINE, facts

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.workloads import Workload, Workloads
from seawall.actions.device_repairs import pod_recreation
from seawall.actions.device_repairs.pod_recreation import recreate
from seawall.actions.device_repairs.repair_run import RepairRun, RepairStepOutcome
from seawall.host.own_commands import Ran

OLD_UID, NEW_UID, OTHER_UID = "0dbd65af-1", "0dbd65af-2", "0dbd65af-3"


def pod(name: str, uid: str) -> Workload:
    return workload(f"/kubepods/pod{uid}/{'ab' * 32}", pod=name, pod_uid=uid, name=f"t/{name}/main")


class Cluster(RepairRun):
    """Pods of this node as they are at each look; kubectl's answers by the pod's name."""

    def __init__(self, old: Workload, *after: Workload, owners: dict[str, str]) -> None:
        super().__init__(None, time.monotonic() + 0.3, "config", print, None)  # type: ignore[arg-type]
        self.old, self.after, self.owners = old, after, owners
        self.ran: list[list[str]] = []
        self.is_deleted = False
        self.others: tuple[Workload, ...] = ()

    def look(self) -> Any:
        """Of everything that runs, each with a device that it can use."""
        found = (*self.others, *(self.after if self.is_deleted else (self.old,)))
        table = facts(*(replace(FINE, workload=one) for one in found)).table
        known = {DeviceTable: table, Workloads: Workloads({one.cgroup: one for one in found}, {})}
        self.snapshot = known  # type: ignore[assignment]
        return known

    def answer(self, command: list[str], *_: object) -> Ran:
        self.ran.append(command[1:])
        self.is_deleted |= "delete" in command
        path = next(word for word in command if word.startswith("/api"))
        name = path.rpartition("/")[2]
        uid = next(one.pod_uid for one in (self.old, *self.after) if one.pod == name)
        owners = [{"kind": "Job", "uid": self.owners[name]}]
        meta = {"uid": uid, "ownerReferences": owners}
        return Ran(0, json.dumps({"metadata": meta}), "")


@pytest.fixture
def repaired(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(pod_recreation, "EVERY_SECONDS", 0.01)
    monkeypatch.setattr(pod_recreation, "find", lambda _: "/bin/kubectl")

    def _repaired(cluster: Cluster) -> RepairStepOutcome:
        monkeypatch.setattr(pod_recreation, "run", cluster.answer)
        return recreate(cluster, cluster.old)

    return _repaired


@pytest.mark.parametrize(
    ("old", "new", "owner", "is_it"),
    [
        ("web-7d9f-x7k2p", "web-7d9f-abcde", "mine", True),
        ("web-7d9f-x7k2p", "web-7d9f-abcde", "another", False),
        ("job-0", "job-0", "mine", True),
        ("job-0", "job-1", "mine", False),  # another one of the same set
        ("job-x7k2p", "job-other-abcde", "mine", False),
    ],
)
def test_only_its_own_next_one_verifies_a_repair(
    repaired: Any, old: str, new: str, owner: str, is_it: bool
) -> None:
    owners = {new: owner} | {old: "mine"}
    found = repaired(Cluster(pod(old, OLD_UID), pod(new, NEW_UID), owners=owners))
    assert (found.state, found.is_verified) == ("done", is_it), found.words
    if not is_it:
        assert "it did not come again on this node" in found.words


def test_a_pod_that_ran_before_is_never_the_next_one(repaired: Any) -> None:
    """A replica beside it, of the same owner, in whose container something was restarted."""
    beside = pod("web-7d9f-abcde", OTHER_UID)
    again = replace(beside, cgroup=beside.cgroup.replace("ab" * 32, "cd" * 32))
    owners = {"web-7d9f-x7k2p": "mine", "web-7d9f-abcde": "mine"}
    cluster = Cluster(pod("web-7d9f-x7k2p", OLD_UID), again, owners=owners)
    cluster.others = (beside,)
    assert not repaired(cluster).is_verified
    assert sum("get" in command for command in cluster.ran) == 1


def test_the_same_pods_new_container_is_not_its_next_one(repaired: Any) -> None:
    """Systemd's names write - as _: it is the same uid."""
    old = pod("job-0", OLD_UID)
    again = replace(old, pod_uid=OLD_UID.replace("-", "_"), cgroup="/kubepods.slice/again.scope")
    assert not repaired(Cluster(old, again, owners={"job-0": "mine"})).is_verified
