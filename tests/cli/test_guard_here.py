"""``guard explain`` of containers without a name: as a guard that runs has it, and in a moment."""

import os
import time
from pathlib import Path

import pytest
from tests.watcher.inventory_node import IDS, LINKS, POD, Node

from seawall.cli.guard_here import here
from seawall.guard.explain import PolicyExplanation, explanation_of
from seawall.guard.settings import Settings
from seawall.host.live import LiveHost
from seawall.readings.snapshot import Snapshot
from seawall.watcher.workload_inventory import WorkloadInventory

NAMELESS = f"{POD}/cri-containerd-{IDS['web']}.scope"
UNNAMED = f"container:{IDS['web'][:12]}"
BOUND_SECONDS = 1.5
SETTINGS = Settings(scope=("/kubepods.slice",))


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """With a container that no file tells of; asked by root, whoever runs this."""
    made = Node.usual(tmp_path)
    made.cgroup(NAMELESS, 5)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return made


def asked(node: Node) -> PolicyExplanation:
    host = LiveHost(str(node.root))
    found = here(SETTINGS, Snapshot(host), host)
    return explanation_of(SETTINGS, found, "/etc/seawall/guard.toml", is_default=True)


def never(node: Node) -> dict[str, str]:
    return {seen.name: seen.protected_by for seen in asked(node).protected}


def looks(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> list[float]:
    """When it looked; each look takes so long."""
    found: list[float] = []
    refresh = WorkloadInventory.refresh

    def look(inventory: WorkloadInventory) -> None:
        found.append(time.monotonic())
        time.sleep(seconds)
        refresh(inventory)

    monkeypatch.setattr(WorkloadInventory, "refresh", look)
    return found


def test_one_that_stays_without_a_name_may_be_acted_on(node: Node) -> None:
    """The guard acts on it some seconds after its start, so that it is never would be wrong."""
    began = time.monotonic()
    found = asked(node)
    assert time.monotonic() - began < BOUND_SECONDS
    assert [seen.path for seen in found.protected] == []
    assert f"/{NAMELESS}" in [seen.path for seen in found.may_act_on]


def test_a_name_that_comes_meanwhile_is_told(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = time.sleep

    def name_it(seconds: float) -> None:
        node.write(f"{LINKS}/dns_kube-system_web-{IDS['web']}.log", "")
        sleep(seconds)

    monkeypatch.setattr(time, "sleep", name_it)
    assert never(node) == {
        "kube-system/dns/web": "protected: part of the cluster (namespace kube-system)"
    }


def test_where_looking_takes_long_it_looks_once_and_says_until_when(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = looks(monkeypatch, 0.6)
    words = "protected: until it is named, some seconds after its start"
    assert never(node) == {UNNAMED: words}
    assert len(found) == 1


def test_where_all_have_names_it_looks_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.container(POD, "web", 5)
    found = looks(monkeypatch)
    assert never(node) == {}
    assert len(found) == 1


def test_an_ordinary_user_is_told_what_it_needs(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = looks(monkeypatch)
    assert never(node) == {UNNAMED: "protected: not known: its name and its role need root"}
    assert len(found) == 1
