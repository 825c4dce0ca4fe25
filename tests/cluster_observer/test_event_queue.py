"""What the thread that turns has heard of; its watches are other threads, and ahead of it."""

from seawall.cluster.kube.event_queue import EventQueue
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind


def test_a_first_list_counts_when_it_is_taken_and_not_when_its_watch_has_it() -> None:
    events, heard = EventQueue(), []
    assert not events.is_taken("things")
    sink = events.sink("things", lambda event: heard.append(event.value))
    for number in range(3):
        sink(ObjectEvent(ObjectEventKind.CHANGED, 0.0, number))
    sink(ObjectEvent(ObjectEventKind.SYNCED, 0.0))
    assert not events.is_taken("things")
    events.take(0.01, 0.0)
    assert events.is_taken("things")
    assert heard == [0, 1, 2, None]
    assert events.empty()
    events.sink("things", heard.append)
    assert not events.is_taken("things"), "another watch of it begins anew"
