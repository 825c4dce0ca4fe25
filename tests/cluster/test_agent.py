"""The agent on nodes of a real control plane, with tokens that are bound to a pod of their node."""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.agent.pages import POD_UID, Pages
from tests.agent.test_last_death import Film
from tests.cluster.agent_account import REPORTS, install, token_of
from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.audit_log import AuditLog, Request
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kwok_nodes import KwokNodes, condition
from tests.cluster.waiting import wait_until
from tests.guard.telling import GIB, MIB, group

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

GROUP = "seawall.internal"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
DELIVERED_SECONDS = 2.0
RESIDENT_MOST_KIB = 20 << 10


class Agents:
    """Of one namespace; each is a process of its own."""

    def __init__(self, plane: ControlPlane, client: ApiClient, space: str, folder: Path) -> None:
        self.plane, self.client, self.space, self.folder = plane, client, space, folder
        self.stack = contextlib.ExitStack()
        self.user = f"system:serviceaccount:{space}:seawall-agent"
        install(client, space)

    def start(self, node: str, blackbox: str = "") -> tuple[Pages, "subprocess.Popen[str]"]:
        """With the token of a pod that is bound to the node; its guard is in peace."""
        folder = self.folder / node
        folder.mkdir()
        (folder / "token").write_text(token_of(self.client, self.space, node))
        pages = Pages(folder / "run")
        pages.peace()
        pages.folder.chmod(0o700)
        for name in (pages.folder / "orders", folder / "kept"):
            name.mkdir(0o700)
        self.stack.enter_context(kept_fresh(pages.folder / "status.json"))
        log = self.stack.enter_context(open(folder / "log", "w"))  # noqa: SIM115 - for life
        source = str(Path(__file__).parents[2] / "src")
        popen = subprocess.Popen(
            [sys.executable, "-m", "seawall", "agent", "--node-name", node,
             "--server", f"https://127.0.0.1:{self.plane.port}",
             "--ca", str(self.plane.folder / "tls.crt"), "--token-file", str(folder / "token"),
             "--run-folder", str(pages.folder), "--blackbox", blackbox,
             "--state-folder", str(folder / "kept")],
            stderr=log, text=True,
            env={**os.environ, "PYTHONPATH": source},
        )  # fmt: skip
        self.stack.callback(popen.wait)
        self.stack.callback(popen.kill)
        return pages, popen

    def log(self, node: str) -> str:
        return (self.folder / node / "log").read_text()


@contextlib.contextmanager
def kept_fresh(page: Path) -> Iterator[None]:
    """As a guard that lives does it, which writes every second."""
    ended = threading.Event()

    def touch() -> None:
        while not ended.wait(1):
            with contextlib.suppress(FileNotFoundError):
                os.utime(page)

    thread = threading.Thread(target=touch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.fixture
def agents(plane: ControlPlane, client: ApiClient, space: str, tmp_path: Path) -> Iterator[Agents]:
    found = Agents(plane, client, space, tmp_path)
    with found.stack:
        yield found


def report_of(client: ApiClient, node: str) -> Object:
    try:
        found: Object = client.get(f"{REPORTS}/{node}")["report"]
    except ApiError as problem:
        if problem.status != 404:
            raise
        return {}
    return found


def conditions_of(client: ApiClient, node: str) -> dict[str, tuple[str, str]]:
    status = client.get(f"/api/v1/nodes/{node}")["status"]
    return {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}


def events_of(client: ApiClient, node: str) -> list[Object]:
    return [one for one in client.items(EVENTS) if one["regarding"]["name"] == node
            and one.get("reportingController") == "seawall.internal/agent"]  # fmt: skip


def writes_of(audit: AuditLog, mark: int, user: str) -> list[Request]:
    return [one for one in audit.since(mark) if one.user == user and one.is_write]


def quick(done: Callable[[], Any], seconds: float, what: str) -> float:
    began = time.monotonic()
    while not done():
        assert time.monotonic() - began < seconds, what
        time.sleep(0.02)
    return time.monotonic() - began


def test_distress_arrives_as_condition_event_and_report_and_peace_is_silent(
    agents: Agents, client: ApiClient, nodes: KwokNodes, audit: AuditLog
) -> None:
    mark = audit.mark()
    quiet, loud = nodes.add(2, prefix="told")
    agents.start(quiet)
    pages, popen = agents.start(loud)
    wait_until(lambda: reads(audit, mark, agents.user) >= {quiet, loud}, 30, "both have looked")
    time.sleep(3)
    assert not writes_of(audit, mark, agents.user)
    pages.decide()
    pages.short(decided=True)
    took = quick(lambda: "MemoryShort" in conditions_of(client, loud)
                 and report_of(client, loud).get("distress") and events_of(client, loud),
                 10, agents.log(loud))  # fmt: skip
    print(f"distress told {took:.2f} s after the page changed")
    assert took <= DELIVERED_SECONDS
    state = conditions_of(client, loud)
    assert state["MemoryShort"] == ("True", "MemoryRunningOut")
    assert state["KernelMemoryUncounted"][0] == state["MemoryLivelock"][0] == "True"
    assert state["Ready"][0] == "True"  # the kubelet's own are as they were
    culprit = report_of(client, loud)["distress"]["culprits"][0]
    assert (culprit["podUID"], culprit["isProved"]) == (POD_UID, True)
    assert events_of(client, loud)[0]["reason"] == "MemoryRunningOut"
    # The cluster takes it for dead: it goes on telling.
    nodes.die(loud)
    wait_until(lambda: condition(client.get(f"/api/v1/nodes/{loud}")) == "Unknown", 60, "silent")
    said = report_of(client, loud)["sequence"]
    wait_until(lambda: report_of(client, loud)["sequence"] > said, 30, "it goes on telling")
    assert conditions_of(client, loud)["MemoryShort"][0] == "True"
    nodes.come_back(loud, rebooted=False)
    pages.peace()
    wait_until(lambda: conditions_of(client, loud)["MemoryShort"] == ("False", "MemoryIsAmple"),
               60, "it takes it back")  # fmt: skip
    assert "distress" not in report_of(client, loud)
    time.sleep(2)
    before = len(writes_of(audit, mark, agents.user))
    time.sleep(12)
    written = writes_of(audit, mark, agents.user)
    assert len(written) == before
    assert {one.name for one in written if one.resource != "events.events.k8s.io"} == {loud}
    assert {one.resource for one in written} == {
        "nodes/status", "events.events.k8s.io", f"nodereports.{GROUP}"
    }  # fmt: skip
    assert all(one.status < 300 for one in written)
    resident = resident_kib(popen.pid)
    print(f"agent: {resident / 1024:.1f} MiB resident after {len(written)} writes, "
          f"{cpu_ms(popen.pid):.0f} ms of CPU since its start")  # fmt: skip
    assert resident <= RESIDENT_MOST_KIB * 1.15


def test_what_waited_arrives_after_the_api_server_is_back(
    agents: Agents, plane: ControlPlane, client: ApiClient, nodes: KwokNodes, audit: AuditLog
) -> None:
    [node] = nodes.add(1, prefix="spool")
    pages, _ = agents.start(node)
    mark = audit.mark()
    wait_until(lambda: node in reads(audit, 0, agents.user), 30, "it has looked")
    pages.short()
    quick(lambda: report_of(client, node).get("distress"), 10, agents.log(node))
    last = report_of(client, node)["sequence"]
    plane.kill_apiserver()
    pages.short(headroom_bytes=150 * MIB)
    time.sleep(25)  # two reports and more
    plane.start_apiserver()
    with plane.client() as again:
        plane.wait(lambda: plane.is_ready(again), "kube-apiserver")
        back = wait_until(lambda: sequence(again, node) > last, 30, "what waited is there")
    told = [one for one in writes_of(audit, mark, agents.user)
            if one.resource.startswith("nodereports") and one.status < 300]  # fmt: skip
    sequences = [one.body["report"]["sequence"] for one in told]
    print(f"{len(sequences)} reports, the last {back:.1f} s after the API server was ready")
    assert sequences == sorted(set(sequences))
    assert len([one for one in sequences if one > last]) >= 2
    client.connection.close()


def test_a_death_is_told_after_the_boot_and_once(
    agents: Agents, client: ApiClient, nodes: KwokNodes, audit: AuditLog, tmp_path: Path
) -> None:
    film = Film(tmp_path / "box")
    film.dying(-30, 0, [group(outside=1900 * MIB, most=2 * GIB)])
    film.decide(-20)
    film.ring.close()
    [node] = nodes.add(1, prefix="reborn")
    mark = audit.mark()
    _, popen = agents.start(node, str(tmp_path / "box"))
    wait_until(lambda: report_of(client, node).get("lastDeath"), 30, "the post-mortem is there")
    death = report_of(client, node)["lastDeath"]
    assert death["record"][0]["kind"] == "Proved"
    assert death["record"][0]["pods"] == [POD_UID]
    assert 0 < len(death["samples"]) <= 12
    assert len(json.dumps(client.get(f"{REPORTS}/{node}"))) <= 16 << 10
    assert len(writes_of(audit, mark, agents.user)) == 1
    assert "MemoryShort" not in conditions_of(client, node)
    popen.terminate()
    assert popen.wait(5) == 0


def sequence(client: ApiClient, node: str) -> int:
    try:
        return int(report_of(client, node)["sequence"])
    except (OSError, KeyError, ApiError):
        return 0


def reads(audit: AuditLog, mark: int, user: str) -> set[str]:
    return {one.name for one in audit.since(mark) if one.user == user and one.verb == "get"}


def resident_kib(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0])


def cpu_ms(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e6
