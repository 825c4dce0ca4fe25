"""The teller as a whole: what one decision leaves behind, where, and at what cost."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.guard.telling import (
    BOOT,
    CGROUP,
    GIB,
    HOSTILE,
    MIB,
    check,
    group,
    groups,
    is_harmless,
    lines_of,
    node,
    outcome,
    verdict,
)

from seawall.guard.settings import Settings
from seawall.guard.tell import errands
from seawall.guard.tell.paths import FILES, Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.verdict import DecisionUpdate

REPOSITORY = Path(__file__).parents[2]
ENFORCE = Settings(mode="enforce", pmsg=True)


class Heard:
    """Stands where the aide is: keeps what it is asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.is_alive = True
        self.kmsg: Path | None = None
        """Its line for the kernel's log is written there, as the aide's child would."""

    def send(self, request: dict[str, Any]) -> bool:
        self.requests.append(json.loads(json.dumps(request)))
        if self.is_alive and self.kmsg and request["do"] == "kmsg":
            errands.kmsg(request, str(self.kmsg))
        return self.is_alive

    def take(self, kind: str) -> dict[str, Any] | None:
        return self.answers.pop(kind, None)

    def asked(self, kind: str) -> list[dict[str, Any]]:
        return [request for request in self.requests if request["do"] == kind]


@pytest.fixture
def aide() -> Heard:
    return Heard()


@pytest.fixture
def made(tmp_path: Path, aide: Heard) -> Iterator[Teller]:
    yield from opened(tmp_path, aide)


def opened(folder: Path, aide: Heard | None, settings: Settings = ENFORCE) -> Iterator[Teller]:
    (folder / "kmsg").touch()
    (folder / "pmsg0").touch()
    if aide is not None:
        aide.kmsg = folder / "kmsg"
    paths = Paths(str(folder), kmsg=f"{folder}/kmsg", pmsg=f"{folder}/pmsg0")
    teller = Teller(settings, paths, BOOT, aide)  # type: ignore[arg-type]
    teller.open()
    yield teller
    teller.close()


def kernel_lines(folder: Path) -> list[str]:
    return (folder / "kmsg").read_text().splitlines()


def test_another_address_waits_for_a_start_and_the_old_one_hears_nothing(
    tmp_path: Path, aide: Heard
) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("127.0.0.1", 0))
        ear.settimeout(0.2)
        to = f"127.0.0.1:{ear.getsockname()[1]}"
        settings = ENFORCE._replace(datagram_to=to, pmsg=False)
        for teller in opened(tmp_path, aide, settings):
            teller.status(node(), groups(), "near", {})
            teller.verdict(verdict())
            assert b"5eed0000-0001" in ear.recv(2000)
            teller.use(settings._replace(datagram_to="127.0.0.1:9", pmsg=True))
            assert [p for p in teller.problems if p.startswith("datagram_to has changed")]
            teller.status(node(), groups(), "near", {})
            teller.verdict(verdict())
            with pytest.raises(TimeoutError):
                ear.recv(2000)
            assert "5eed0000-0001" in (tmp_path / "pmsg0").read_text()
            teller.use(settings._replace(datagram_to=""))
            assert not [p for p in teller.problems if "datagram" in p]


def test_one_id_ties_everything_together(made: Teller, tmp_path: Path, aide: Heard) -> None:
    made.verdict(verdict())
    made.update_decision(
        DecisionUpdate("5eed0000-0001", 100.1, outcome(), None, "killed shop/cart/worker")
    )
    made.update_decision(
        DecisionUpdate("5eed0000-0001", 100.5, None, 1380 * MIB, "1.3 GiB came back in 0.4 s")
    )
    made.status(node(), groups(), "holding", {"can kill": "can kill: proved 1 s ago in 4 ms"})
    decisions = lines_of(tmp_path / "decisions.jsonl")
    assert [line["kind"] for line in decisions] == ["verdict", "outcome", "told"]
    assert {line["decision"] for line in decisions} == {"5eed0000-0001"}
    assert [line["seconds"] for line in decisions] == [100.0, 100.1, 100.5]
    for line in decisions:
        check(line, "decision")
    said = kernel_lines(tmp_path)
    assert said[0].startswith("<4>seawall-guard: 5eed0000-0001: 700 MiB have to come back")
    assert said[1:] == [
        "<4>seawall-guard: 5eed0000-0001: killed shop/cart/worker",
        "<5>seawall-guard: 5eed0000-0001: 1.3 GiB came back in 0.4 s",
    ]
    assert len((tmp_path / "pmsg0").read_text().splitlines()) == 3
    assert [r["words"] for r in aide.asked("say")][2] == "5eed0000-0001: 1.3 GiB came back in 0.4 s"
    status = (tmp_path / "status").read_text()
    assert "last       5eed0000-0001" in status
    assert "-> 1.3 GiB came back in 0.4 s" in status
    document = json.loads((tmp_path / "status.json").read_text())
    check(document, "guard-status-page")
    assert (document["kills"], document["returned_bytes"]) == (1, 1380 * MIB)
    assert made.last_decision == ""


def test_ids_go_on_from_what_the_guard_before_wrote(made: Teller, tmp_path: Path) -> None:
    made.verdict(verdict(decision="5eed0000-0041"))
    (again,) = opened(tmp_path, None)
    assert again.last_decision == "5eed0000-0041"


def test_after_a_kill_the_container_is_told_why(tmp_path: Path, aide: Heard) -> None:
    settings = ENFORCE._replace(run_after_kill="/usr/bin/logger killed")
    for teller in opened(tmp_path, aide, settings):
        teller.verdict(verdict())
        teller.outcome(outcome())
        teller.outcome(outcome())  # told twice, done once
    (request,) = aide.asked("termination_message")
    assert request["cgroup"] == CGROUP
    assert re.match(
        r"Killed by seawall guard at 20\d\d-\S+Z \(decision 5eed0000-0001, node_short\) to get "
        r"back 1\.4 GiB of shop/cart/worker: 700 MiB have to come back within 4 s: "
        r"shop/cart/worker holds 1\.1 GiB",
        request["words"],
    )
    (run,) = aide.asked("run")
    assert run["command"] == "/usr/bin/logger killed"
    check(json.loads(run["stdin"]), "decision")
    assert 0 < json.loads(run["stdin"])["seconds"] <= time.monotonic()


def test_sigterm_that_was_enough_is_told_and_counted_as_well(tmp_path: Path, aide: Heard) -> None:
    settings = ENFORCE._replace(run_after_kill="/usr/bin/logger ended")
    for teller in opened(tmp_path, aide, settings):
        teller.verdict(verdict())
        teller.outcome(outcome("terminate"))
        assert teller._tally.counts()["kills"] == 1
        teller.outcome(outcome("kill"))
        counts = teller._tally.counts()
    assert (counts["kills"], counts["predicted_bytes"]) == (1, outcome().order.predicted_bytes)
    first, second = (request["words"] for request in aide.asked("termination_message"))
    assert first.startswith("Sent SIGTERM by seawall guard at 20")
    assert second.startswith("Killed by seawall guard at 20")
    assert len(aide.asked("run")) == 2


def test_what_the_aide_could_not_do_is_said_once_and_shown(made: Teller, aide: Heard) -> None:
    failed = {"problem": "the command was not found, or could not be run"}
    for number in range(3):
        aide.answers["run"] = failed
        made.status(node(seconds=200.0 + 20 * number), groups(), "peace", {})
    said = [request["words"] for request in aide.asked("say")]
    assert said == ["run_after_kill: the command was not found, or could not be run"]
    assert said[0] in made.problems
    aide.answers["run"] = {"problem": "", "status": 0}
    made.status(node(seconds=300.0), groups(), "peace", {})
    assert said[0] not in made.problems


@pytest.mark.parametrize(
    "changes",
    [{"is_observed": True}, {"is_done": False, "processes": 0, "problem": "its inode is another"}],
)
def test_without_a_kill_no_container_is_told(
    made: Teller, tmp_path: Path, aide: Heard, changes: dict[str, Any]
) -> None:
    made.verdict(verdict())
    made.outcome(outcome(**changes))
    made.outcome(outcome("freeze"))
    assert not aide.asked("termination_message")
    document_lines = lines_of(tmp_path / "decisions.jsonl")
    assert [line["kind"] for line in document_lines] == ["verdict", "outcome", "outcome"]


def test_the_status_is_written_seldom_in_peace_and_at_once_when_it_changes(
    made: Teller, tmp_path: Path
) -> None:
    def written(seconds: float, state: str) -> bool:
        before = (tmp_path / "status").stat().st_ino
        made.status(node(seconds=seconds), groups(), state, {})
        return (tmp_path / "status").stat().st_ino != before

    assert written(100.0, "peace")
    assert not written(105.0, "peace")
    assert written(110.0, "peace")
    assert written(110.1, "short")
    assert not written(110.6, "short")
    assert written(111.2, "short")
    made.event("reloaded")
    assert written(111.3, "short")


def test_whom_the_kernel_ended_all_the_same_is_in_the_journal(made: Teller, tmp_path: Path) -> None:
    """What a decision is held against later, where no black box is."""
    made.verdict(verdict())
    made.status(node(kernel_kills=2), groups(), "holding", {})
    last = lines_of(tmp_path / "decisions.jsonl")[-1]
    check(last, "decision")
    assert (last["kind"], last["kernel_kills"]) == ("event", 2)
    assert last["sentence"] == "processes that the kernel's OOM killer ended: 2"


def test_metrics_and_rivals_are_errands(tmp_path: Path, aide: Heard) -> None:
    aide.answers["rivals"] = {"rivals": ["earlyoom (pid 7) kills on its own"]}
    for teller in opened(tmp_path, aide, Settings(textfile="/x/seawall.prom")):
        teller.verdict(verdict())
        teller.status(node(own_major_faults=2), groups(), "peace", {"tick_seconds": "0.003"})
        teller.status(node(own_major_faults=1), groups(), "short", {})
    assert len(aide.asked("rivals")) == 1
    (request,) = aide.asked("textfile")
    values = request["values"]
    assert [row for row in values["decisions"] if row[2]] == [["node_short", "observed", 1]]
    assert (values["own_major_faults"], values["last_tick_seconds"]) == (2, "0.003")
    assert values["resident_bytes"] > 1 << 20
    assert "beside it  earlyoom (pid 7) kills on its own" in (tmp_path / "status").read_text()


def test_without_its_aide_it_goes_on_and_says_so(made: Teller, tmp_path: Path, aide: Heard) -> None:
    aide.is_alive = False
    made.verdict(verdict())
    made.outcome(outcome())
    made.status(node(), groups(), "short", {})
    assert "!! " in (tmp_path / "status").read_text()
    assert any("its aide is gone" in words for words in made.problems)
    assert len(lines_of(tmp_path / "decisions.jsonl")) == 2


def test_the_kernels_log_is_left_to_the_aide(made: Teller, tmp_path: Path, aide: Heard) -> None:
    """A serial console can hold up whoever writes for seconds; without an aide it writes itself."""
    aide.kmsg = None
    made.event("one")
    assert kernel_lines(tmp_path) == []
    assert [request["record"] for request in aide.asked("kmsg")] == ["<6>seawall-guard: one\n"]
    aide.is_alive = False
    made.event("two")
    assert kernel_lines(tmp_path) == ["<6>seawall-guard: two"]


def test_a_flood_of_events_is_bounded_and_a_decision_still_gets_through(
    made: Teller, tmp_path: Path
) -> None:
    for number in range(1000):
        made.event(f"a tick failed: {number}")
    made.verdict(verdict())
    said = kernel_lines(tmp_path)
    assert len(said) < 30
    assert "5eed0000-0001" in said[-1]
    assert re.search(r"\(9\d\d lines before were left out\)", said[-1])
    assert len(lines_of(tmp_path / "decisions.jsonl")) == len(said)


def test_the_trigger_goes_out_by_udp(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.settimeout(10)
        to = f"127.0.0.1:{end.getsockname()[1]}"
        for teller in opened(tmp_path, None, Settings(datagram_to=to)):
            teller.status(node(), groups(), "near", {})
            teller.verdict(verdict())
        found = json.loads(end.recv(65536))
    assert found["boot_id"] == BOOT
    assert [row["name"] for row in found["top"]] == ["shop/cart/w3", "shop/cart/w2", "shop/cart/w1"]
    assert found["decision"]["id"] == "5eed0000-0001"
    assert found["decision"]["how"] == "observed"
    # What a driver took is in no counter of anybody: this alone tells of it.
    figures = ("headroom_bytes", "residual_bytes", "residual_grown_bytes")
    assert [found[key] for key in figures] == [4 * GIB, 3 * GIB, 1 * GIB]


def test_hostile_words_reach_nobody_as_they_are(made: Teller, tmp_path: Path) -> None:
    made.event(HOSTILE)
    made.verdict(verdict(sentence=HOSTILE, refused=HOSTILE))
    made.update_decision(
        DecisionUpdate("5eed0000-0001", 1.0, outcome(problem=HOSTILE), None, HOSTILE)
    )
    made.status(node(), groups(), HOSTILE, {"blind": HOSTILE, "x" + HOSTILE: HOSTILE})
    for name in ("status", "status.json", "decisions.jsonl", "kmsg", "pmsg0"):
        assert is_harmless((tmp_path / name).read_bytes()), name


def test_all_it_makes_is_in_the_list_of_its_files(made: Teller, tmp_path: Path) -> None:
    made.status(node(), groups(), "short", {})
    assert {path.name for path in tmp_path.iterdir()} == {*FILES, "kmsg", "pmsg0"}


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    teller = Teller(ENFORCE, Paths(f"{tmp_path}/none", kmsg="/none", pmsg="/none"), BOOT, None)
    teller.open()
    teller.status(node(), groups(), "peace", {})
    teller.verdict(verdict())
    assert f"{tmp_path}/none/status: {os.strerror(errno.ENOENT)}" in teller.problems
    teller.close()


GROWTH = """
import gc, os, sys
from tests.guard.telling import *
from seawall.guard.settings import Settings
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.verdict import DecisionUpdate

folder = sys.argv[1]
open(folder + "/kmsg", "w").close()
teller = Teller(Settings(mode="enforce"), Paths(folder, kmsg=folder + "/kmsg"), BOOT, None)
teller.open()
many = groups(20)
ranking = tuple([rank(i + 1) for i in range(250)])
extra = {"can kill": "can kill: proved 12 s ago in 4 ms", "watcher": "heard", "blind": "a"}

def round(number):
    teller.is_due = True
    teller.status(node(seconds=100.0 + number), many, "short", extra)
    if number % 50 == 0:
        name = "5eed0000-%04d" % number
        teller.verdict(verdict(ranking[:32], decision=name), ranking[32:])
        teller.update_decision(DecisionUpdate(name, 1.0, outcome(), 5, "it came back"))

def resident():  # statm lags by a batch for each CPU since 6.2
    return int(open("/proc/self/status").read().split("VmRSS:")[1].split()[0]) << 10

for number in range(2000):
    round(number)
gc.collect(); gc.freeze(); gc.disable()
before = resident()
for number in range(2000, 2000 + int(sys.argv[2])):
    round(number)
print(resident() - before)
"""


def test_a_thousand_statuses_and_a_hundred_decisions_take_no_memory(tmp_path: Path) -> None:
    """A short one for every run; 100,000 and 2,000 were measured by hand: 0 bytes."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path), "5000"], capture_output=True, text=True,
        cwd=REPOSITORY, env={"PYTHONPATH": "src:."}, check=True,
    )  # fmt: skip
    assert int(done.stdout) <= 64 << 10, done.stdout


def test_a_scope_that_matches_nothing_is_shouted(tmp_path: Path) -> None:
    words = "acts on NOTHING: scope /kubepods has no cgroups here"
    for scope, is_empty in ((("/kubepods",), True), (("/",), False)):
        settings = ENFORCE._replace(scope=scope)
        folder = tmp_path / str(is_empty)
        folder.mkdir()
        teller = Teller(settings, Paths(str(folder), kmsg="/none", pmsg="/none"), BOOT, None)
        teller.open()
        found = group("/user.slice", "/user.slice")
        teller.status(node(), {found.path: found}, "peace", {})
        page = " ".join((folder / "status").read_text().split())
        assert (words in page) is is_empty
        teller.close()
