"""The status as a person reads it, and as a program does."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from tests.guard.telling import BOOT, GIB, HOSTILE, MIB, check, group, is_harmless, node

from seawall.guard.tell.status_json import PAGE_BYTES as JSON_BYTES
from seawall.guard.tell.status_json import document
from seawall.guard.tell.status_page import COLUMNS, LINES, PAGE_BYTES, page
from seawall.guard.tell.status_values import LatestDecision, StatusValues, seconds_left, top_of
from seawall.guard.tick_facts import NOTHING_OUTSIDE, Group
from seawall.readings.guard_status import parse

LAST = LatestDecision(
    "5eed0000-0001", 1_795_208_600.0, "node_short", "acted",
    "700 MiB have to come back within 4 s: shop/cart/worker holds 1.1 GiB outside its charge.",
    "1.4 GiB came back in 0.3 s",
)  # fmt: skip
SECTIONS = ["headroom", "uncounted", "signs", "decided", "last", "watcher", "black box",
            "beside it", "scope", "config", "unseen", "also"]  # fmt: skip


def shown(**changes: Any) -> StatusValues:
    return StatusValues(
        mode="enforce", mode_why="", state="peace", unix_seconds=1_795_295_047.0, node=node(),
        top=[group()], last=LAST,
        counts={"decisions": 1, "kills": 1, "predicted_bytes": 1400 * MIB,
                "returned_bytes": 1380 * MIB},
        can_kill="can kill: proved 12 s ago in 4 ms", watcher="heard 0.4 s ago", blind=[],
        blackbox="/var/lib/seawall/blackbox, last frame 8812, at most 9 s old",
        problems=[], others=["earlyoom (pid 77) kills on its own"], notes=[],
        scope=("/kubepods.slice", "/kubepods"), config="/etc/seawall/guard.toml",
        folder="/run/seawall", pid=4711, since=1_795_200_000.0, boot_id=BOOT, host="node-7",
    )._replace(**changes)  # fmt: skip


def lines(**changes: Any) -> list[str]:
    return [line.rstrip() for line in page(shown(**changes)).decode().splitlines()]


def test_the_whole_page() -> None:
    assert (
        "\n".join(lines()).rstrip() == (Path(__file__).parent / "status.txt").read_text().rstrip()
    )


def test_every_line_has_its_place() -> None:
    odd = {"blind": [], "problems": ["a"] * 50, "notes": ["b: c"] * 50, "last": None, "top": []}
    for changes in ({}, odd, {"can_kill": HOSTILE, "watcher": HOSTILE, "scope": (HOSTILE,)}):
        data = page(shown(**changes))
        assert len(data) == LINES * (COLUMNS + 1) <= PAGE_BYTES
        assert {len(line) for line in data.splitlines()} == {COLUMNS}
        assert is_harmless(data)
        labels = [line[:9].strip() for line in data.decode().splitlines()]
        places = [labels.index(w) for w in ("headroom", "uncounted", "decided", "scope", "config")]
        assert places == sorted(places)


def test_however_much_is_wrong_every_section_is_there() -> None:
    """Thirty lines and more have to become 24: each section is cut at its own end."""
    long = "much is wrong here " * 20
    found = lines(
        can_kill="CANNOT KILL: " + long, problems=[long], watcher=long, blackbox=long,
        others=[long], scope=(long,), config=long, blind=[long], notes=[long], top=[group()] * 3,
        last=LAST._replace(sentence=long, result=long),
        node=node(swap_bytes=GIB, slope_bytes_per_second=9e8, stalls_per_second=1e6, is_min=True,
                  swap_used_bytes=GIB, late_seconds=9.0),
    )  # fmt: skip
    labels = [label for line in found if (label := line[:10].strip()) and line[:1].isalpha()]
    assert [label for label in labels if label in SECTIONS] == SECTIONS
    assert len(found) == LINES
    assert found[-2].startswith("unseen     much is wrong here")
    assert all(line.endswith(" ...") for line in found[-6:])
    assert any(line.startswith("           ->") for line in found)
    few = lines(others=[long], blind=[long])
    assert few[-1].endswith(" ...")  # where there is room the lowest takes it
    assert LINES - next(i for i, line in enumerate(few) if line.startswith("unseen")) >= 3


def test_a_long_path_is_shown_without_its_middle() -> None:
    """What is wrong with it stands beside it; the document has it whole."""
    path = (
        "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0c2f1b9e"
        "_77aa_4d0e_9a52_3f0f6c1d2e3f.slice/cri-containerd-"
        + "5" * 61
        + "abc.scope/memory.pressure"
    )
    blind = [f"{path}: no such file", "/proc/pressure/memory: not on this kernel"]
    found = lines(blind=blind, notes=[f"hook: {path} failed"])
    at = next(i for i, line in enumerate(found) if line.startswith("unseen"))
    assert found[at] == "unseen     /sys/fs/cgroup/k...bc.scope/memory.pressure: no such file;"
    assert found[at + 1].strip() == "/proc/pressure/memory: not on this kernel"
    assert found[at + 2] == "also       hook: /sys/fs/cgroup/k...abc.scope/memory.pressure failed"
    told = json.loads(document(shown(blind=blind)))
    assert told["blind"] == blind


def test_a_guard_that_cannot_kill_says_so_loudly_near_the_top() -> None:
    words = "CANNOT KILL: /sys/fs/cgroup/x/cgroup.kill: Permission denied"
    assert lines(can_kill=words)[2] == (
        "!! IT CANNOT KILL: /sys/fs/cgroup/x/cgroup.kill: Permission denied !!"
    )
    assert lines(can_kill="can kill: not proved yet")[2] == "!! IT CANNOT KILL: not proved yet !!"
    assert lines(can_kill="")[2] == "!! IT CANNOT KILL: not proved yet !!"


def test_one_that_only_observes_says_that_instead() -> None:
    found = lines(mode="observe", can_kill="CANNOT KILL: not tried: observed only",
                  mode_why="another guard (pid 7) holds the lock")  # fmt: skip
    assert found[0].startswith("seawall guard OBSERVE  node is in peace  2026-11-21 21:04:07Z")
    assert found[2] == "it only observes and kills nothing (self-test: not tried: observed only)"
    assert found[3] == "!! observes only: another guard (pid 7) holds the lock"


@pytest.mark.parametrize(
    ("state", "words"),
    [("short", "node is SHORT OF MEMORY"), ("near", "node comes NEAR its limit"),
     ("blind", "guard is BLIND"), ("\x1b[2J", "node: \\x1b[2J")],
)  # fmt: skip
def test_states_in_words(state: str, words: str) -> None:
    assert lines(state=state)[0] == f"seawall guard ENFORCE  {words}  2026-11-21 21:04:07Z"


def test_seconds_left() -> None:
    falling = node(headroom_bytes=480 * MIB, slope_bytes_per_second=120.0 * MIB)
    assert seconds_left(falling) == 4.0
    assert lines(node=falling)[3] == "headroom   480 MiB of 16.0 GiB, gone in 4 s at 120 MiB/s"
    assert seconds_left(node(slope_bytes_per_second=-5.0)) is None
    assert seconds_left(node(headroom_bytes=-5, slope_bytes_per_second=9.0)) == 0.0


def test_a_residual_that_is_not_known_is_not_zero() -> None:
    blind = node(residual_bytes=None, claims_seconds=None)
    assert lines(node=blind)[4] == "uncounted  not known: the watcher has not told it"
    assert json.loads(document(shown(node=blind)))["residual_bytes"] is None


def test_who_holds_most_outside_goes_first() -> None:
    def made(name: str, outside: int, charge: int) -> Group:
        one = group(name, "/" + name, outside=outside)
        one.charge_bytes = charge
        if not outside:
            one.outside = NOTHING_OUTSIDE
        return one

    large, small = made("large", 0, 9 * GIB), made("small", 0, 1)
    rings, more = made("rings", 5, 1), made("more", 6, 1)
    assert [one.name for one in top_of([small, large, rings, more])] == ["more", "rings", "large"]


def test_a_long_name_keeps_its_end() -> None:
    long = group("a-namespace-of-a-tenant/a-pod-with-a-very-long-name-7d9f8b6c5-abcde/worker")
    assert lines(top=[long])[8] == (
        "  400 MiB   1.1 GiB   1.2 GiB   500 MiB  OVER ...ng-name-7d9f8b6c5-abcde/worker"
    )


def test_the_document_is_what_the_schema_says_and_the_reading_reads() -> None:
    data = document(shown())
    assert len(data) <= JSON_BYTES
    check(json.loads(data), "guard-status-page")
    status = parse(data)
    assert (status.mode, status.can_kill, status.headroom_bytes) == ("enforce", True, 4 * GIB)
    assert status.last_decision is not None
    assert status.last_decision.result == "1.4 GiB came back in 0.3 s"
    (top,) = status.top
    assert (top.name, top.outside_certain_bytes) == ("shop/cart/worker", 1100 * MIB)


def test_a_document_with_hostile_words_is_bounded_and_still_read() -> None:
    bad = group(HOSTILE, "/" + HOSTILE)
    data = document(shown(
        top=[bad] * 3, blind=[HOSTILE] * 99, problems=[HOSTILE] * 99, others=[HOSTILE] * 99,
        notes=[HOSTILE] * 99, scope=(HOSTILE,) * 99, can_kill=HOSTILE, watcher=HOSTILE,
        last=LAST._replace(sentence=HOSTILE, result=HOSTILE), config=HOSTILE, host=HOSTILE,
        node=node(slope_bytes_per_second=float("nan"), stalls_per_second=float("inf")),
    ))  # fmt: skip
    assert len(data) <= JSON_BYTES
    assert is_harmless(data)
    found = json.loads(data)
    check(found, "guard-status-page")
    assert found["left_out"] > 400
    assert all(is_harmless(str(word).encode()) for word in asdict(parse(data)).values())
