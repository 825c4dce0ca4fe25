"""The page tracer on Debian's 6.1 under cgroup v2: hist triggers, kprobes, kill -9, lockdown."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.innocents import guest_files
from tests.kernels import built_modules
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
MIB = 1 << 20
PAGE = 4096
GUEST = Path(__file__).with_name("guest") / "page_trace_guest.py"
JOB = "export JOB; /usr/bin/python3.11 $JOB/page_trace_guest.py\n"


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    if why := built_modules.missing():
        pytest.skip(why)
    files = {**guest_files(), **built_modules.built(), GUEST.name: GUEST.read_bytes()}
    folder = tmp_path_factory.mktemp("page_trace")
    return run_job(image, JOB, folder, files=files, memory_mib=1024)


def told(node: Outcome, name: str) -> Any:
    return json.loads(node.text(f"{name}.json"))


def pages_of(page: dict[str, Any], pid: int, what: str = "pages") -> int:
    tasks = [number for number, task in enumerate(page["tasks"]) if task["tgid"] == pid]
    return sum(row[what] for row in page["held"] if row["task"] in tasks)


def test_the_ring_is_its_takers_and_nothing_is_the_senders(node: Outcome) -> None:
    page = told(node, "held")
    assert page["mechanism"] == "ring+hist"
    held = pages_of(page, page["culprit"])
    assert abs(held * PAGE - 64 * MIB) < 0.02 * 64 * MIB
    assert pages_of(page, page["sender"]) * PAGE < 4 * MIB
    row = max(page["held"], key=lambda row: row["pages"])
    task = page["tasks"][row["task"]]
    assert task["cgroups"] == ["0::/culprit"]
    assert task["cgroup_inode"] == page["inode"]
    assert task["known_by"] == "attach"
    assert "packet_set_ring" in page["stacks"][row["stack"]][:3]
    gone = [row for row in page["after"] if row["pages"] * PAGE > MIB]
    assert gone == []


def test_of_a_sample_more_than_half_is_certain_by_the_kernels_own_sums(node: Outcome) -> None:
    page = told(node, "sampled")
    assert (page["sampled_one_in"], page["mechanism"]) == (64, "ring+hist")
    most, least = (pages_of(page, page["culprit"], f"{end}_pages") for end in ("most", "least"))
    assert 0.75 * 256 * MIB < least * PAGE <= 256 * MIB <= most * PAGE
    assert pages_of(page, page["sender"], "least_pages") * PAGE < 4 * MIB


def test_a_known_driver_is_watched_by_kprobes_of_our_own(node: Outcome) -> None:
    page = told(node, "held")
    (row,) = [row for row in page["kprobes"] if row["pages"]]
    assert (row["driver"], row["pages"], row["freed_pages"]) == ("stand-in", 5, 0)
    assert page["tasks"][row["task"]]["tgid"] == page["culprit"]
    assert "packet_setsockopt" in page["kprobe_events"]
    assert told(node, "clean") == [[], ""]


def test_the_drivers_own_functions_tell_who_got_and_who_gave_back(node: Outcome) -> None:
    page = told(node, "driver")
    assert " nvidia:nv_alloc_pages value=$arg2:u32" in page["lines"]
    rows = {page["tasks"][row["task"]]["tgid"]: row for row in page["kprobes"]}
    pages = 8 * MIB // PAGE
    holder, passer = rows[page["holder"]], rows[page["passer"]]
    assert (holder["driver"], holder["pages"], holder["freed_pages"]) == ("nvidia", pages, 0)
    assert (passer["pages"], passer["freed_pages"]) == (pages, pages)
    # The clocks of an emulator's two CPUs differ: a page that one frees and the other takes at
    # once may look as if it had been freed last.
    assert 0.99 * pages <= pages_of(page, page["holder"]) <= 1.02 * pages
    assert pages_of(page, page["passer"]) <= 0.02 * pages


def test_while_paused_no_trigger_keeps_the_event_at_work(node: Outcome) -> None:
    armed, off, again, new_window, end = told(node, "paused")
    for state in (armed, again, new_window, end):
        assert state[0].startswith("hist:keys=common_pid,order")
    assert "hist:" not in off[0].replace("# hist", "")
    assert armed[1]
    assert off[1]


def test_a_full_map_of_the_kernel_is_blind(node: Outcome) -> None:
    assert any("BLIND" in note for note in told(node, "blind"))


def test_a_map_that_is_emptied_in_time_forgets_nobody(node: Outcome) -> None:
    asked, entries, trigger = told(node, "emptied")
    threads, own, dropped = zip(*asked, strict=True)
    assert threads[-1] >= 20 * 20
    assert list(threads) == sorted(threads)
    assert list(own) == sorted(own)
    assert own[-1] > own[0] > 0
    assert set(dropped) == {0}
    assert entries <= 128
    assert trigger.startswith("hist:keys=common_pid,order")
    assert "[active]" in trigger


def test_a_killed_tracer_is_removed_by_its_keeper(node: Outcome) -> None:
    left, _, probes, during, swept, after = told(node, "kept")
    assert (left, probes, during, swept, after) == ([], "", [], "", [])


def test_without_a_keeper_it_stops_by_itself_and_the_next_run_sweeps_it(node: Outcome) -> None:
    left, recording, probes, during, swept, after = told(node, "unkept")
    assert [name.split("-")[-1] for name in left] == ["frees", "pages", "tasks"]
    assert recording == ["0", "0", "0"]
    assert probes.count("packet_setsockopt") == 2
    assert (during, swept, after) == ([], "", [])


def test_somebody_elses_tracing_stays_as_it_was(node: Outcome) -> None:
    before, during, after, events, left, stacks = told(node, "others")
    assert before[0].strip() == "1"
    assert "order > 3" in before[1]
    assert before == during == after
    assert events > 0
    assert left == ["somebody"]
    assert stacks == ["1", "0", "0"]  # of pages taken only, whatever the top has


def test_a_child_can_mount_it_before_there_were_detached_mounts(node: Outcome) -> None:
    names, is_seen_here = told(node, "handed")
    assert {"instances", "events", "trace_clock"} <= set(names)
    assert not is_seen_here


def test_lockdown_is_named(node: Outcome) -> None:
    why, words = told(node, "locked")
    assert why == "refused"
    assert "locked down (confidentiality)" in words


def test_all_of_it_ran(node: Outcome) -> None:
    assert node.status == 0, node.console[-3000:]
