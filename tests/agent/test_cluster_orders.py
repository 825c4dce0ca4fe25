"""Brake, orders and quarantines as the agent brings them: what is written, when it is taken back,
and what an API server that does wrong changes nothing of.
"""

import calendar
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.agent.api_server import Answer, Request, api_server
from tests.agent.pages import HERE, POD_UID, Pages
from tests.agent.test_node_agent import QUICK

from seawall.agent.api_connection import ApiConnection, server_of
from seawall.agent.cluster_orders import ClusterOrders, OrderPace, quarantines_on, unix_of
from seawall.agent.node_agent import NodeAgent
from seawall.agent.order_folder import OrderFolder
from seawall.agent.page_watch import PageWatch
from seawall.guard.order_files import OrderFiles

FAST = OrderPace(brake=0.1, order=0.05, quarantines=0.2)
GONE: Answer = (404, {}, {"message": "not found"})
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="the guard believes root's files alone")


class Cluster:
    """What the API server holds."""

    def __init__(self) -> None:
        self.policy: Answer = GONE
        self.order: Answer = GONE
        self.quarantines: Answer = (200, {}, {"items": []})
        self.status: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.is_away = False

    def reply(self, request: Request) -> Answer:
        if self.is_away:
            raise ConnectionError
        path = request.path
        if "/seawallpolicies/default" in path:
            return self.policy
        if "/rescueorders/" in path and request.verb == "PATCH":
            self.status.append(request.body)
            return (200, {}, {})
        if "/rescueorders/node-7" in path:
            return self.order
        if "/workloadquarantines" in path:
            return self.quarantines
        if "/nodereports/" in path and request.verb == "PATCH":
            self.reports.append(request.body["report"])
        return (200, {}, {})


class Scene:
    def __init__(self, folder: Path, cluster: Cluster, port: int, certificate: str) -> None:
        self.cluster = cluster
        token = folder / "token"
        token.write_text("t\n")
        self.pages = Pages(folder / "run")
        (folder / "run").chmod(0o700)
        self.orders = folder / "run/orders"
        self.orders.mkdir(0o700)
        self.disk = folder / "disk"
        self.disk.mkdir(0o700)
        self.said: list[str] = []
        connection = ApiConnection(
            server_of(f"https://127.0.0.1:{port}", certificate, str(token), "node-7")
        )
        watch = PageWatch(str(self.pages.folder), HERE, time.monotonic())
        folders = OrderFolder(str(self.orders)), OrderFolder(str(self.disk))
        orders = ClusterOrders(connection, *folders, HERE, self.said.append, FAST)
        self.agent = NodeAgent(watch, connection, self.said.append, QUICK, orders)
        self.pages.peace()

    def until(self, done: Callable[[], object], seconds: float = 5.0) -> None:
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, ("not within time", self.said)
            time.sleep(self.agent.turn(time.monotonic()))

    def turn(self, seconds: float = 0.5) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(self.agent.turn(time.monotonic()))

    @property
    def files(self) -> set[str]:
        return {path.name for path in self.orders.iterdir()}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with made(tmp_path) as scene:
        yield scene


@contextmanager
def made(folder: Path) -> Iterator[Scene]:
    cluster = Cluster()
    with api_server(folder, cluster.reply) as answers:
        scene = Scene(folder, cluster, answers.port, answers.certificate)
        try:
            yield scene
        finally:
            scene.agent.connection.close()


def policy(**spec: Any) -> Answer:
    return (200, {}, {"kind": "SeawallPolicy", "metadata": {"name": "default"}, "spec": spec})


def stamp(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))


def rescue(uid: str = "uid-1", expires: float = 300, **changes: Any) -> Answer:
    spec = {"nodeName": "node-7", "bootID": HERE, "podUIDs": [POD_UID], "requestedBy": "ops",
            "expiresAt": stamp(expires), **changes}  # fmt: skip
    return (200, {}, {"metadata": {"name": "node-7", "uid": uid}, "spec": spec})


# --- the brake ------------------------------------------------------------------------------


def test_the_brake_comes_and_goes_and_the_guard_says_so_in_the_report(scene: Scene) -> None:
    scene.turn(0.3)
    assert scene.files == set()
    scene.cluster.policy = policy(brake=True)
    scene.until(lambda: "brake" in scene.files)
    assert not scene.cluster.reports
    scene.pages.peace(mode="observe", brake_since=time.time())
    scene.until(lambda: scene.cluster.reports)
    guard = scene.cluster.reports[-1]["guard"]
    assert (guard["mode"], guard["brake"]) == ("observe", True)
    scene.turn(0.3)
    assert len(scene.cluster.reports) == 1  # said once
    scene.cluster.policy = policy()
    scene.until(lambda: "brake" not in scene.files)
    scene.pages.peace(mode="enforce")
    scene.until(lambda: len(scene.cluster.reports) == 2)
    assert scene.cluster.reports[-1]["guard"]["brake"] is False


@pytest.mark.parametrize(
    "answer",
    [GONE, (403, {}, {}), (500, {}, {}), (429, {}, {}), (200, {}, b"\xff"), (200, {}, b"[]"),
     (401, {}, {})],
    ids=str,
)  # fmt: skip
def test_nothing_but_a_policy_without_a_brake_takes_it_off(scene: Scene, answer: Answer) -> None:
    scene.cluster.policy = policy(brake=True)
    scene.until(lambda: "brake" in scene.files)
    scene.cluster.policy = answer
    scene.turn()
    assert "brake" in scene.files
    scene.cluster.is_away = True
    scene.turn()
    assert "brake" in scene.files


@pytest.mark.parametrize("value", ["true", 1, {}, [True], None])
def test_only_true_is_a_brake(scene: Scene, value: Any) -> None:
    scene.cluster.policy = policy(brake=value)
    scene.turn(0.3)
    assert scene.files == set()


def test_in_peace_it_writes_nothing_and_asks_on_one_connection(tmp_path: Path) -> None:
    with made(tmp_path) as scene:
        scene.turn(1.0)
        assert scene.agent.connection.handshakes == 1
        assert not scene.cluster.reports
        assert not scene.cluster.status


# --- rescue ---------------------------------------------------------------------------------


def answer_of(scene: Scene, state: str, returned: int | None = None, uid: str = "uid-1") -> None:
    scene.pages.short(rescue={"order": uid, "state": state, "words": "w\x1b", "decision": "d-1",
                              "returned_bytes": returned})  # fmt: skip


@ROOT
def test_an_order_reaches_the_guard_and_its_answers_the_cluster(scene: Scene) -> None:
    scene.cluster.order = rescue()
    scene.turn(0.3)
    assert scene.files == set()  # in peace nobody asks for one
    scene.pages.short()
    scene.until(lambda: "rescue" in scene.files)
    files = OrderFiles(str(scene.pages.folder))
    files.look()
    assert files.order is not None
    assert (files.order.order, files.order.boot_id, files.order.pods, files.order.by) == (
        "uid-1", HERE, (POD_UID,), "ops",
    )  # fmt: skip
    for state, returned in (("waits", None), ("accepted", None), ("accepted", 5), ("done", 7)):
        answer_of(scene, state, returned)
        told = len(scene.cluster.status)
        scene.until(lambda told=told: len(scene.cluster.status) > told)
    assert [one["status"]["state"] for one in scene.cluster.status] == [
        "Waiting", "Accepted", "Accepted", "Done",
    ]  # fmt: skip
    last = scene.cluster.status[-1]
    assert last["metadata"] == {"uid": "uid-1"}  # never the answer to another one
    assert last["status"]["returnedBytes"] == 7
    assert last["status"]["message"].isprintable()
    assert "rescue" not in scene.files
    scene.turn(0.3)
    assert len(scene.cluster.status) == 4


def test_the_guards_answer_to_another_order_is_not_this_ones(scene: Scene) -> None:
    scene.pages.short()
    answer_of(scene, "done", 7, uid="uid-0")
    scene.cluster.order = rescue()
    scene.until(lambda: "rescue" in scene.files)
    scene.turn(0.3)
    assert not scene.cluster.status


def test_one_that_is_deleted_is_taken_back(scene: Scene) -> None:
    scene.pages.short()
    scene.cluster.order = rescue()
    scene.until(lambda: "rescue" in scene.files)
    scene.cluster.order = GONE
    scene.until(lambda: "rescue" not in scene.files)


def test_one_that_came_too_late_is_answered_and_not_brought(scene: Scene) -> None:
    scene.pages.short()
    scene.cluster.order = rescue(expires=-5)
    scene.until(lambda: scene.cluster.status)
    assert scene.cluster.status[0]["status"]["state"] == "Refused"
    assert "expired" in scene.cluster.status[0]["status"]["message"]
    assert scene.files == set()


def test_a_folder_that_is_not_there_is_said(scene: Scene) -> None:
    scene.orders.rmdir()
    scene.pages.short()
    scene.cluster.order = rescue()
    scene.until(lambda: scene.cluster.status)
    assert "cannot be brought to the guard" in scene.cluster.status[0]["status"]["message"]


@pytest.mark.parametrize(
    "changes",
    [{"podUIDs": 7}, {"podUIDs": [1, None]}, {"podUIDs": "x"}, {"expiresAt": "soon"},
     {"expiresAt": None}, {"bootID": []}],
    ids=str,
)  # fmt: skip
def test_an_object_of_another_shape_ends_nothing(scene: Scene, changes: dict[str, Any]) -> None:
    scene.pages.short()
    scene.cluster.order = rescue(**changes)
    scene.turn(0.5)
    scene.cluster.order = rescue("uid-2")
    scene.until(lambda: "rescue" in scene.files and b"uid-2" in
                (scene.orders / "rescue").read_bytes())  # fmt: skip


# --- quarantines ----------------------------------------------------------------------------


def quarantine(name: str = "q", state: str = "Active", expires: float = 300, **pods: str) -> Any:
    rows = [{"uid": uid.replace("_", "-"), "node": node} for uid, node in pods.items()]
    return {"metadata": {"name": name}, "status": {"pods": rows},
            "spec": {"state": state, "expiresAt": stamp(expires)}}  # fmt: skip


@ROOT
def test_pods_of_this_node_are_listed_on_disk_and_for_the_guard(scene: Scene) -> None:
    items = [
        quarantine(a_1="node-7", b_2="node-8"), quarantine("p", "Proposed", c_3="node-7"),
        quarantine("old", expires=-5, d_4="node-7"), 7, {"spec": 1}, {"status": {"pods": [1]}},
    ]  # fmt: skip
    scene.cluster.quarantines = (200, {}, {"items": items})
    scene.until(lambda: "quarantine" in scene.files)
    files = OrderFiles(str(scene.pages.folder))
    files.look()
    assert files.quarantined is not None
    assert files.quarantined.pods == {"a-1": "q"}
    kept = json.loads((scene.disk / "quarantine.json").read_text())
    assert [one["pods"] for one in kept["quarantines"]] == [["a-1"]]
    scene.cluster.quarantines = (200, {}, {"items": []})
    scene.until(lambda: not json.loads((scene.disk / "quarantine.json").read_text())["quarantines"])


def test_many_are_bounded() -> None:
    items = [quarantine(f"q{n}", **{f"u{n}_{pod}": "node-7" for pod in range(40)})
             for n in range(80)]  # fmt: skip
    rows = quarantines_on("node-7", items, time.time())
    assert sum(len(one["pods"]) for one in rows) == 256
    assert quarantines_on("node-7", None, 0.0) == []


def test_many_suspects_hide_none_that_is_in_force() -> None:
    suspects = [quarantine(f"s{n}", "Suspected", **{f"u{n}": "node-7"}) for n in range(80)]
    rows = quarantines_on("node-7", [*suspects, quarantine("z", pod_1="node-7")], time.time())
    assert [one["name"] for one in rows] == ["z"]


# --- times, files ---------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [0, 951_827_696, 1_709_164_799, 1_795_428_031, 4_102_444_799])
def test_a_time_is_read_as_the_library_reads_it(seconds: int) -> None:
    words = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
    assert unix_of(words) == unix_of(words.replace("Z", ".123456Z")) == seconds
    assert calendar.timegm(time.gmtime(seconds)) == seconds


@pytest.mark.parametrize(
    "words",
    ["", "soon", "2026-11-29", "2026-13-01T00:00:00Z", "2026-11-29T01:02:03+01:00",
     "99999-01-01T00:00:00Z"],
)  # fmt: skip
def test_what_is_no_time_is_none(words: str) -> None:
    assert unix_of(words) is None


def test_a_file_is_whole_and_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    folder = OrderFolder(str(tmp_path))
    (tmp_path / "elsewhere").write_text("as before")
    (tmp_path / "x").symlink_to(tmp_path / "elsewhere")
    (tmp_path / ".x.new").symlink_to(tmp_path / "elsewhere")
    assert folder.put("x", {"a": 1}, is_kept=True)
    assert (tmp_path / "elsewhere").read_text() == "as before"
    assert json.loads((tmp_path / "x").read_text()) == {"a": 1}
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    assert not OrderFolder(str(link)).put("y", {})
