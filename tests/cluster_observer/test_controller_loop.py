"""What the thread that turns has heard of; its watches are other threads, and ahead of it."""

from seawall.cluster.kube.controller_loop import ControllerLoop
from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient
from seawall.cluster.kube.leader_lease import LeaderLease
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind


class Names(ControllerLoop):
    ROUND_SECONDS = 0.01
    BATCH_SECONDS = 0.0


def test_a_first_list_counts_when_it_is_taken_and_not_when_its_watch_has_it() -> None:
    """A leader that looked in between would take what it has not heard of for gone."""
    client = KubeClient(ClusterAccess("https://127.0.0.1:1"))
    loop = Names(client, LeaderLease(client, "seawall", "lease", "one"))
    taken: list[object] = []
    assert not loop._is_taken("things")
    sink = loop._sink("things", lambda event: taken.append(event.value))
    for number in range(3):
        sink(ObjectEvent(ObjectEventKind.CHANGED, 0.0, number))
    sink(ObjectEvent(ObjectEventKind.SYNCED, 0.0))
    assert not loop._is_taken("things")
    loop._take_events()
    assert loop._is_taken("things")
    assert taken == [0, 1, 2, None]
    loop._sink("things", taken.append)
    assert not loop._is_taken("things"), "another watch of it begins anew"
    client.close()
