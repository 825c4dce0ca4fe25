"""By whose hand a workload ended, by lines as the guard, the kernel and the peers write them."""

import json
import re
from typing import Any

import pytest
from tests.kernels import guard_hands
from tests.kernels.guard_node import GUARD, NOBODY, Killer, Report
from tests.kernels.guard_scenarios import ALL, NOT_FOR_NOTHING, REPORTED, on
from tests.kernels.vm import Outcome

HOG = "/kubepods/burstable/pod1f/aa"
OTHER = "/kubepods/burstable/pod2e/bb"
PIDS = [1437, 1440]
GLOBAL = (
    "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
    f"task_memcg={HOG},task=python3.11,pid=1437,uid=0"
)
AT_LIMIT = (
    f"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg={HOG},"
    f"task_memcg={HOG},task=python3.11,pid=1437,uid=0"
)


def line(step: str, cgroup: str = HOG, **more: Any) -> str:
    """Of decisions.jsonl: what became of an order."""
    order = {"decision": "5eed0001-0001", "step": step, "cgroup": cgroup, "name": "test/hog/hog"}
    outcome = {"order": order, "is_done": True, "is_observed": False, "problem": "", "processes": 2}
    row = {"kind": "outcome", "seconds": 12.5, "sentence": "done", "outcome": {**outcome, **more}}
    return json.dumps(row) + "\n"


def reported(
    decisions: str = "", kernel: tuple[str, ...] = (), killer: Killer = GUARD, log: str = ""
) -> Report:
    """A scenario in which the hog ended."""
    hog = {
        "name": "hog", "path": HOG, "is_culprit": True, "empty_at": 9.0, "pids": PIDS,
        "leader_ended": [9.0, 9], "kernel_kills": 0, "limit_hits": 0, "refaults": 0,
    }  # fmt: skip
    told = {
        "killer": killer.name, "loads": [hog], "go": 3.0, "never_held": False,
        "canary": {"died_at": None, "pids": [7], "path": "/system.slice/kubelet.service"},
        "memory": {"swap_least": 0.5, "huge_least": 0},
        "kernel": [[8.0, text] for text in kernel], "killer_files": {"decisions.jsonl": decisions},
    }  # fmt: skip
    files = {"000.json": json.dumps(told).encode(), f"{killer.name}.log": log.encode()}
    return Report(ALL["rings fast"], Outcome(files=files), "000.json", killer)


def hand(*given: Any) -> str:
    (death,) = reported(*given).deaths
    return death.by


@pytest.mark.parametrize("step", ["kill", "terminate"])
def test_an_order_that_was_done_is_the_guards(step: str) -> None:
    assert hand(line(step), (GLOBAL,)) == "guard"


@pytest.mark.parametrize(
    "what",
    [
        {"is_done": False, "problem": "refused: Operation not permitted", "processes": 0},
        {"is_done": False, "problem": "refused: Operation not permitted", "processes": 1},
        {"is_done": True, "problem": "nobody is in it", "processes": 0},
        {"is_done": False, "is_observed": True, "processes": 0},
        {"step": "freeze"},
        {"cgroup": OTHER},
    ],
    ids=["refused", "not whole", "nobody was left", "observed", "frozen only", "another's"],
)
def test_an_order_that_ended_nobody_is_not(what: dict[str, Any]) -> None:
    decisions = line(**{"step": "kill", **what})
    assert hand(decisions, (GLOBAL,)) == "kernel"
    assert hand(decisions) == "?"


def test_a_clamp_ends_by_the_kernels_hand() -> None:
    assert hand(line("clamp"), (AT_LIMIT,)) == "kernel, its limit"


def test_the_kernel_names_a_cgroup_whole() -> None:
    assert guard_hands.kernel_hand([GLOBAL], HOG) == "kernel"
    assert guard_hands.kernel_hand([GLOBAL.replace(HOG, f"{HOG}/init")], HOG) == "kernel"
    assert guard_hands.kernel_hand([GLOBAL.replace(HOG, f"{HOG}b")], HOG) == ""


def test_the_older_half_of_the_journal_counts_and_a_torn_line_does_not() -> None:
    files = {"decisions.1.jsonl": line("kill"), "decisions.jsonl": line("kill", OTHER)[:40]}
    assert guard_hands.signalled(guard_hands.journal(files)) == {HOG}


def test_who_was_signalled_is_told_whatever_came_of_it() -> None:
    refused = line("kill", is_done=False, processes=1)
    nobody = line("kill", OTHER, processes=0)
    assert reported(refused + nobody).signalled == {"hog"}
    assert reported(line("terminate", OTHER)).signalled == {OTHER}


# --- the peers -------------------------------------------------------------------------

EARLYOOM = """\
mem avail: 1437 of 1440 MiB (99.79%), swap free:    0 of    0 MiB ( 0.00%)
low memory! at or below SIGTERM limits: mem 10.00%, swap 10.00%
sending SIGTERM to process <PID> uid 0 "python3.11": badness 1437, VmRSS 1440 MiB
process exited after 0.1 seconds
"""
NOHANG = """\
>>=== STARTING implement_corrective_action() ====>>
Process with highest badness (found in 1437ms):
  PID: <PID>, Name: python3.11, badness: 1440
Victim status (found in 1440ms):
  PID:       <PID>, name: python3.11, state: S (sleeping), EUID: 0, SID: 1437 (sh), lifetime: 9s
  badness:   980, oom_score:  1437, oom_score_adj:  958
  cgroup_v2: /kubepods/burstable/pod2e/bb
  PPID:      1437 (python3.11)
Memory info, MiB:
  total=1440, used=1437, free=30, available=60, shared=0, buffers=1, cache=90,
Implementing a corrective action:
  Sending SIGTERM to the victim
OK; total response time: 1440ms
"""
OOMD = """\
[../src/oomd/plugins/KillMemoryGrowth-inl.h:1437] Picked "/kubepods/burstable/pod2e" (1440MB)
[../src/oomd/plugins/BaseKillPlugin.cpp:1440] Trying to kill /sys/fs/cgroup/kubepods/burstable/pod2e
[../src/oomd/plugins/BaseKillPlugin.cpp:1437] Killed 2: 1501(python3.11) <PID>(python3.11)
"""
SYSTEMD_OOMD = """\
Considered 2 cgroups for killing, top candidates were:
\tPath: /kubepods/burstable/pod1f/aa
\tPath: /kubepods/burstable/pod2e/bb
Killed <PATH> due to memory pressure for /kubepods being 61.18% > 60.00% \
for > 2s with reclaim activity
"""
LOGS = {"earlyoom": EARLYOOM, "nohang": NOHANG, "oomd": OOMD, "systemd-oomd": SYSTEMD_OOMD}


def of_peer(name: str, log: str) -> str:
    return hand("", (), Killer(name), log)


@pytest.mark.parametrize("name", LOGS)
def test_a_peer_did_what_it_says_that_it_did(name: str) -> None:
    """The log is full of the hog's numbers and its path also where it tells of another."""
    log = LOGS[name]
    assert of_peer(name, log.replace("<PID>", "1440").replace("<PATH>", HOG)) == name
    assert of_peer(name, log.replace("<PID>", "1502").replace("<PATH>", OTHER)) == "?"


def test_what_a_peer_could_not_do_it_did_not() -> None:
    gone = NOHANG.replace("OK; total", "Selected process died before corrective action").replace(
        "<PID>", "1440"
    )
    assert of_peer("nohang", gone) == "?"
    log = "[../src/oomd/plugins/BaseKillPlugin.cpp:9] Killed 1: 1440(python3.11)[E3] 1502(sh)\n"
    assert of_peer("oomd", log) == "?"
    assert guard_hands.pids_killed("oomd", log) == {1502}


@pytest.mark.parametrize("killed", ["/kubepods/burstable/pod1f", f"{HOG}/init", HOG])
def test_a_cgroup_is_killed_with_those_above_and_below(killed: str) -> None:
    assert of_peer("systemd-oomd", SYSTEMD_OOMD.replace("<PATH>", killed)) == "systemd-oomd"
    log = SYSTEMD_OOMD.replace("<PATH>", killed.replace("pod1f", "pod1"))
    assert of_peer("systemd-oomd", log) == "?"


def test_without_a_word_nobody_did_it() -> None:
    assert hand("", (), NOBODY) == "?"


# --- what was to be there, and to be said ----------------------------------------------


def test_what_was_not_reached_is_told_and_is_wrong() -> None:
    report = reported(line("kill"))
    assert report.is_right
    report.scenario = on(report.scenario, reaches={"share of swap": 0.5})
    assert (report.not_reached, report.is_right) == ("", True)
    report.scenario = on(report.scenario, reaches={"share of swap": 0.7, "refaults": 1})
    assert report.not_reached == "share of swap 0.5 of 0.7, refaults 0 of 1"
    assert not report.is_right


def test_what_was_to_be_said_is_looked_for_in_decisions_and_status() -> None:
    report = reported(line("kill"))
    report.scenario = on(report.scenario, says="^unseen: .*rings")
    assert not report.has_said
    report.told["killer_files"]["status.json"] = json.dumps({"blind": ["packet rings: refused"]})
    assert report.has_said
    report.scenario = on(report.scenario, says="^outcome: done$")
    assert report.has_said


CAME_TO_NOTHING = (
    "told: 24.0 MiB came back in 3.0 s, 4 % of what was foretold for test/hog/5bb6bcb89ec2: "
    "its processes are stuck in the kernel and hold the rest"
)
REFUSED = (
    "node_short: 91.0 MiB left of 1.4 GiB, 19.9 MiB less every second: 4.6 s (free pages are under "
    "the low watermark). Nobody is killed: 93.3 MiB of what was lost is in no cgroup, and no "
    "evidence says whose it is"
)
OVER = (
    "over_limit: 113 MiB over its limit of 400 MiB: test/hog/5bb6bcb89ec2 has 6.2 MiB charged and "
    "holds 507 MiB of uncounted memory (packet rings counted by the kernel). Nothing is done: the "
    'policy is "report". Before the node is short: restart it'
)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [(NOT_FOR_NOTHING, CAME_TO_NOTHING), (NOT_FOR_NOTHING, REFUSED), (REPORTED, OVER)],
    ids=["it came to nothing", "refused", "reported"],
)
def test_a_node_said_so(pattern: str, words: str) -> None:
    """As they came from VMs."""
    assert re.search(pattern, words)
    assert not re.search(pattern, words.replace("test/hog", "test/service-1").replace("Nobody", ""))
