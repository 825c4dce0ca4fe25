"""Watches against a server that forgets, refuses, breaks off and repeats itself."""

import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.cluster_observer.api_answers import Answer, ApiAnswers, answer, pieces

from seawall.cluster.kube.custom_watch import CustomWatch
from seawall.cluster.kube.kube_client import KubeClient
from seawall.cluster.kube.list_watch import ListWatch, ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, NodeRowDecoder, RowFields
from seawall.cluster.kube.node_watch import NodeWatch

pytestmark = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="no openssl, which makes the certificate"
)
FIELDS = RowFields(
    ("eks.amazonaws.com/nodegroup", "node.kubernetes.io/instance-type"), ("rack",),
    ("karpenter.sh/capacity-type",), ("ToBeDeletedByClusterAutoscaler",), ("kured",),
)  # fmt: skip
PATH = "/apis/seawall.internal/v1alpha1/nodereports"
K = ObjectEventKind


def node(name: str, version: int, uid: str = "", ready: str = "True") -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-29T01:00:00Z"}
    return {
        "kind": "Node", "metadata": {
            "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version),
            "labels": {"node.kubernetes.io/instance-type": "p5", "other": "x"},
        }, "status": {"conditions": [condition], "nodeInfo": {"bootID": "b"}},
    }  # fmt: skip


def line(kind: str, item: dict[str, Any]) -> bytes:
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: int, *, is_end: bool = False) -> bytes:
    notes = {"k8s.io/initial-events-end": "true"} if is_end else {}
    metadata = {"resourceVersion": str(version), "annotations": notes}
    return line("BOOKMARK", {"kind": "Node", "metadata": metadata})


def refusal(code: int, reason: str, **headers: str) -> Answer:
    return answer(code, json.dumps({"reason": reason, "code": code}).encode(), **headers)


class Hearing:
    """A watch in its thread, and what it told."""

    def __init__(self, server: ApiAnswers, make: Callable[..., ListWatch[Any]]) -> None:
        self.server = server
        self.events: list[tuple[ObjectEventKind, str]] = []
        self.values: list[Any] = []
        self.client = KubeClient(server.access)
        self.watch = make(self.client, self.hear)
        self.thread = threading.Thread(target=self.watch.run)
        self.thread.start()

    def hear(self, event: ObjectEvent[Any]) -> None:
        name = ""
        if event.value is not None:
            value = event.value
            name = value.name if isinstance(value, NodeRow) else value["metadata"]["name"]
        self.events.append((event.kind, name))
        self.values.append(event.value)

    def told(self, *wanted: tuple[ObjectEventKind, str]) -> None:
        """Waits for exactly these; signs apart."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            events = [one for one in self.events if one[0] is not K.SIGN]
            if events[: len(wanted)] == list(wanted):
                return
            time.sleep(0.01)
        assert events == list(wanted)

    def paths(self) -> list[str]:
        return [request.split(b" ")[1].decode() for request in self.server.requests]

    def stop(self) -> None:
        self.watch.stop()
        self.thread.join(5)
        assert not self.thread.is_alive()
        self.client.close()


Hear = Callable[..., Hearing]


@pytest.fixture
def hear(tmp_path: Path) -> Iterator[Hear]:
    with ExitStack() as stack:

        def start(*answers: Answer, custom: bool = False) -> Hearing:
            quiet = pieces(b"", then=lambda: time.sleep(0.5))
            server = stack.enter_context(ApiAnswers(tmp_path, [*answers, quiet]))

            def make(
                client: KubeClient, sink: Callable[[ObjectEvent[Any]], None]
            ) -> ListWatch[Any]:
                if custom:
                    return CustomWatch(client, PATH, sink, relist_jitter_seconds=0.0)
                return NodeWatch(client, FIELDS, sink, relist_jitter_seconds=0.0)

            hearing = Hearing(server, make)
            stack.callback(hearing.stop)
            return hearing

        yield start


def open_after(*parts: bytes) -> Answer:
    """A watch that stays open for a while."""
    return pieces(*parts, then=lambda: time.sleep(1.0))


def test_the_first_list_comes_through_the_watch(hear: Hear) -> None:
    hearing = hear(open_after(
        line("ADDED", node("a", 1)), line("ADDED", node("b", 2)), bookmark(5, is_end=True),
        line("MODIFIED", node("a", 6, ready="Unknown")), line("DELETED", node("b", 7)),
    ))  # fmt: skip
    hearing.told(
        (K.CHANGED, "a"), (K.CHANGED, "b"), (K.SYNCED, ""), (K.CHANGED, "a"), (K.GONE, "b")
    )
    (path,) = hearing.paths()
    assert "sendInitialEvents=true" in path
    assert "resourceVersionMatch=NotOlderThan" in path
    assert "resourceVersion=" not in path
    assert hearing.watch.is_synced
    assert [one.ready for one in hearing.watch.values()] == ["Unknown"]
    assert hearing.watch.stale_seconds() < 5
    assert hearing.watch.relists == 1


def test_without_watch_list_it_lists_by_pages(hear: Hear) -> None:
    pages = [
        {"metadata": {"resourceVersion": "9", "continue": "more"}, "items": [node("a", 1)]},
        {"metadata": {"resourceVersion": "9"}, "items": [node("b", 2)]},
    ]  # fmt: skip
    hearing = hear(
        refusal(422, "Invalid"), *(answer(200, json.dumps(page).encode()) for page in pages),
        open_after(line("MODIFIED", node("a", 10))),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.CHANGED, "b"), (K.SYNCED, ""), (K.CHANGED, "a"))
    paths = hearing.paths()
    assert paths[1:3] == ["/api/v1/nodes?limit=100", "/api/v1/nodes?limit=100&continue=more"]
    assert "resourceVersion=9" in paths[3]
    assert "sendInitialEvents" not in paths[3]


@pytest.mark.parametrize("form", ["status", "event"])
def test_what_the_server_forgot_is_listed_anew_and_the_gone_are_told(hear: Hear, form: str) -> None:
    error = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    start = [line("ADDED", node("a", 1)), line("ADDED", node("b", 2)), bookmark(5, is_end=True)]
    forgotten = (
        [pieces(*start), refusal(410, "Expired")] if form == "status"
        else [pieces(*start, line("ERROR", error))]
    )  # fmt: skip
    hearing = hear(*forgotten, open_after(
        line("ADDED", node("a", 1)), line("ADDED", node("c", 8)), bookmark(9, is_end=True),
    ))  # fmt: skip
    hearing.told(
        (K.CHANGED, "a"), (K.CHANGED, "b"), (K.SYNCED, ""),
        (K.CHANGED, "c"), (K.GONE, "b"), (K.SYNCED, ""),
    )  # fmt: skip
    assert hearing.watch.restarts["expired"] == 1
    assert hearing.watch.relists == 2
    assert sorted(one.name for one in hearing.watch.values()) == ["a", "c"]


def test_a_watch_that_ends_goes_on_where_it_was(hear: Hear) -> None:
    hearing = hear(
        pieces(line("ADDED", node("a", 1)), bookmark(5, is_end=True),
               line("MODIFIED", node("a", 7)), bookmark(8)),
        open_after(line("MODIFIED", node("a", 9))),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""), (K.CHANGED, "a"), (K.CHANGED, "a"))
    assert "resourceVersion=8" in hearing.paths()[1]
    assert "unreachable" in hearing.watch.restarts
    assert hearing.watch.relists == 1


def test_what_is_older_is_dropped_unless_it_is_another_object(hear: Hear) -> None:
    hearing = hear(open_after(
        line("ADDED", node("a", 100)), bookmark(100, is_end=True), line("MODIFIED", node("a", 99)),
        line("MODIFIED", node("a", 100)), line("DELETED", node("a", 98)),
        line("ADDED", node("a", 97, uid="another")),
        line("MODIFIED", node("a", 101, uid="another")),
    ))  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""), (K.CHANGED, "a"), (K.CHANGED, "a"))
    assert [(one.uid, one.resource_version) for one in hearing.values if one] == [
        ("uid-a", 100), ("another", 97), ("another", 101),
    ]  # fmt: skip


def test_a_list_is_believed_even_where_its_versions_went_back(hear: Hear) -> None:
    """etcd was restored from a backup."""
    hearing = hear(
        pieces(line("ADDED", node("a", 100)), bookmark(100, is_end=True)), refusal(410, "Expired"),
        open_after(line("ADDED", node("a", 50, ready="Unknown")), bookmark(60, is_end=True)),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""), (K.CHANGED, "a"), (K.SYNCED, ""))
    assert [one.resource_version for one in hearing.watch.values()] == [50]


def test_half_a_first_list_is_begun_again_and_nothing_is_gone_by_it(hear: Hear) -> None:
    hearing = hear(
        pieces(line("ADDED", node("a", 1)), line("ADDED", node("b", 2)), bookmark(9, is_end=True)),
        refusal(410, "Expired"), pieces(line("ADDED", node("a", 1))),
        open_after(line("ADDED", node("a", 1)), line("ADDED", node("b", 2)),
                   bookmark(9, is_end=True)),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.CHANGED, "b"), (K.SYNCED, ""), (K.SYNCED, ""))
    assert "sendInitialEvents" in hearing.paths()[3]


@pytest.mark.parametrize("code", [401, 403, 404, 429, 500, 503])
def test_a_refusal_is_told_and_tried_again(hear: Hear, code: int) -> None:
    hearing = hear(
        *[refusal(code, "No", Retry_After="0")] * 2,
        open_after(line("ADDED", node("a", 1)), bookmark(5, is_end=True)),
    )  # fmt: skip
    hearing.told((K.BROKEN, ""), (K.BROKEN, ""), (K.CHANGED, "a"), (K.SYNCED, ""))
    assert hearing.watch.restarts == {"refused": 2}
    assert hearing.watch.problem == ""


def test_a_connection_that_breaks_off_is_no_outage(hear: Hear) -> None:
    """A load balancer that drops idle connections; the next one is opened at once."""
    hearing = hear(
        pieces(line("ADDED", node("a", 1)), bookmark(5, is_end=True)),
        open_after(line("MODIFIED", node("a", 6))),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""), (K.CHANGED, "a"))
    assert K.BROKEN not in {kind for kind, _ in hearing.events}


def test_a_node_that_cannot_be_read_is_counted_and_stops_nobody(hear: Hear) -> None:
    hearing = hear(open_after(
        line("ADDED", {"metadata": {"name": 7}}), line("ADDED", {}), line("ADDED", node("a", 1)),
        bookmark(5, is_end=True),
    ))  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""))
    assert hearing.watch.undecodable == 2


@pytest.mark.parametrize("junk", [b"junk\n", b"[1]\n", b"[" * 100_000 + b"\n", b"\xff\n", b"\n"])
def test_a_line_that_is_no_event_begins_it_again(hear: Hear, junk: bytes) -> None:
    hearing = hear(
        open_after(line("ADDED", node("a", 1)), bookmark(5, is_end=True), junk),
        open_after(line("MODIFIED", node("a", 6))),
    )  # fmt: skip
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""), (K.CHANGED, "a"))


def test_our_own_kinds_come_as_they_are(hear: Hear) -> None:
    report = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "3"},
              "report": {"sequence": 4, "unknown": [1]}}  # fmt: skip
    hearing = hear(open_after(line("ADDED", report), bookmark(5, is_end=True)), custom=True)
    hearing.told((K.CHANGED, "a"), (K.SYNCED, ""))
    assert hearing.watch.values() == [report]
    assert hearing.paths()[0].startswith(PATH)


def test_it_stops_at_once_while_it_waits_and_while_it_reads(hear: Hear) -> None:
    hearing = hear(pieces(bookmark(5, is_end=True), then=lambda: time.sleep(2)))
    hearing.told((K.SYNCED, ""))
    began = time.monotonic()
    hearing.stop()
    assert time.monotonic() - began < 1.0


def decoded(**changes: Any) -> NodeRow:
    item = node("a", 7)
    for path, value in changes.items():
        first, _, rest = path.partition("__")
        item.setdefault(first, {})[rest] = value
    return NodeRowDecoder(FIELDS).decode(json.dumps(item).encode())


def test_a_row_has_what_the_policy_names() -> None:
    row = decoded(
        metadata__labels={
            "node.kubernetes.io/instance-type": "p5", "eks.amazonaws.com/nodegroup": "gpu",
            "karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "z", "rack": "r",
        },
        status__nodeInfo={"bootID": "b", "kernelVersion": "6.8"},
    )  # fmt: skip
    assert row.stratum == ("gpu", "6.8", "spot", "z")
    assert (row.domain, row.boot_id, row.ready, row.resource_version) == ("r", "b", "True", 7)
    assert (row.plan, row.is_cordoned) == ("", False)


@pytest.mark.parametrize(
    ("capacity", "pool"),
    [
        ({"cpu": "96", "memory": "2113538064Ki", "nvidia.com/gpu": "8", "hugepages-2Mi": "0"},
         "96 cpu, 2000 GiB, nvidia.com/gpu"),
        ({"cpu": "1", "memory": "1279852Ki"}, "1 cpu, 1.2 GiB"),
        ({"cpu": "8", "memory": "34359738368"}, "8 cpu, 32 GiB"),
        ({"cpu": "8", "memory": 34359738368}, "8 cpu, 32 GiB"),
        ({"memory": "34359738368"}, ""),
        ({"cpu": "8", "memory": "much"}, ""),
        ({"cpu": "8", "memory": ["1Ki"]}, ""),
        (None, ""),
    ],
)  # fmt: skip
def test_without_a_label_nodes_that_are_alike_are_a_pool(capacity: Any, pool: str) -> None:
    assert decoded(status__capacity=capacity, metadata__labels={}).pool == pool
    label = {"eks.amazonaws.com/nodegroup": "gpu"}
    assert decoded(status__capacity=capacity, metadata__labels=label).pool == "gpu"


def test_a_node_that_lost_some_devices_or_a_little_memory_is_of_its_pool_still() -> None:
    before = {"cpu": "96", "memory": "263847520Ki", "nvidia.com/gpu": "8"}
    after = {"cpu": "96", "memory": "263721000Ki", "nvidia.com/gpu": "7"}
    was, now = (decoded(metadata__labels={}, status__capacity=one) for one in (before, after))
    assert was.pool == now.pool == "96 cpu, 250 GiB, nvidia.com/gpu"


def test_marks_have_the_time_that_they_say() -> None:
    at = "2026-11-29T01:00:00Z"
    seconds = 1795914000.0
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": at}
    row = decoded(spec__unschedulable=True, spec__taints=[cordon])
    assert (row.is_cordoned, row.cordoned_seconds, row.plan) == (True, seconds, "")
    scaled = {
        "key": "ToBeDeletedByClusterAutoscaler",
        "value": "1795914000",
        "effect": "NoSchedule",
    }
    row = decoded(spec__taints=[scaled])
    assert (row.plan, row.planned_seconds) == ("taint ToBeDeletedByClusterAutoscaler", seconds)
    row = decoded(metadata__annotations={"kured": "true", "x": "y"})
    assert (row.plan, row.planned_seconds) == ("annotation kured", 0.0)
    assert decoded(metadata__annotations={"kured": ""}).plan == ""
    row = decoded(metadata__deletionTimestamp=at)
    assert (row.plan, row.planned_seconds) == ("deleted", seconds)
    assert decoded(spec__taints=[{"key": "other", "effect": "NoExecute"}]).plan == ""


@pytest.mark.parametrize("time_words", ["", "yesterday", "9999-99-99T00:00:00Z", None])
def test_a_time_that_is_none_is_zero(time_words: str | None) -> None:
    condition = {"type": "Ready", "status": "Unknown", "lastTransitionTime": time_words}
    row = decoded(status__conditions=[condition])
    assert (row.ready, row.ready_seconds) == ("Unknown", 0.0)


def test_words_that_nodes_share_are_one_in_memory() -> None:
    first, second = decoded(), decoded()
    assert first.pool is second.pool
    assert first.ready is second.ready
