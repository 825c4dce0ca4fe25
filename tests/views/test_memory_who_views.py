"""``memory --who`` and ``--watch`` in words: 80 columns, number first, nothing hostile."""

import json
from dataclasses import replace

import jsonschema
import pytest
from tests.end_to_end.verbs import SOURCES

from seawall.accounts.claim import Claim
from seawall.accounts.claims.claims import Claims
from seawall.accounts.node_memory.ledger import Ledger
from seawall.accounts.tracing.trace_rows import (
    NOBODY_TRACED,
    Capped,
    StackSum,
    TracedProcess,
    TracedRow,
    TraceSum,
)
from seawall.host.host import Unread
from seawall.readings.saved_claims import SavedClaim, SavedClaims
from seawall.views.document import head, render
from seawall.views.documents.memory_document import MEMORY
from seawall.views.memory_page import MemoryPage
from seawall.views.memory_watch_lines import claim_words, text_line
from seawall.views.memory_who_page import WhoPage, not_traced, trace_lacks
from seawall.views.memory_who_text import lines
from seawall.views.terminal import Console
from seawall.watcher.memory_watch_document import WATCH
from seawall.watcher.memory_watch_loop import WatchEvent

MIB = 1 << 20
SCHEMAS = SOURCES / "seawall/views/schemas"
ROW = TracedRow(
    holder="shop/cart-6b8d5c7f4-x2x9z/worker", workload="shop/cart-6b8d5c7f4-x2x9z/worker",
    cgroup="/kubepods/x", cgroup_inode=7, is_gone=False, kind="ring", what="packet ring",
    driver=None, within="residual", bytes=1024 * MIB, least_bytes=1024 * MIB,
    most_bytes=1024 * MIB, mapped_bytes=0, processes=(TracedProcess(4711, "rings", 1, True),),
    stack=("packet_set_ring", "packet_setsockopt", "__sys_setsockopt"),
)  # fmt: skip
LEDGER = Ledger(
    total_bytes=8192 * MIB, lines=(), residual_bytes=1500 * MIB, residual_error_bytes=18 * MIB,
    unknown=(), nodes=(), notes=(),
)  # fmt: skip
TRACED = TraceSum(
    has_trace=True, seconds=10.2, rows=(ROW,), counted={"vmalloc": 3 * MIB},
    by_stack=(StackSum(1024 * MIB, ROW.stack, (ROW.holder,)),),
    given_back=(("unit:iperf.service", 4592 * MIB),), growth_bytes=1030 * MIB,
    error_bytes=18 * MIB, events=1000, mechanism="ring",
)  # fmt: skip


def page(traced: TraceSum = TRACED, claims: tuple[Claim, ...] = ()) -> WhoPage:
    absent = Unread("x", "absent")
    claimed = Claims(
        claims=claims, suspects=(), unexplained_bytes=0, unexplained_least_bytes=0,
        unexplained_most_bytes=0, unseen=(), unread=(),
    )  # fmt: skip
    memory = MemoryPage(
        ledger=LEDGER, headroom=absent, base=absent, base_is_new=False, claimed=claimed,
        shadow=absent, unseen=(), bundle_notes=(),
    )  # fmt: skip
    unseen = (*trace_lacks(traced),) if traced.has_trace else (not_traced(None),)
    return WhoPage(memory=memory, traced=traced, unseen=unseen)


def text(traced: TraceSum = TRACED, width: int = 80, claims: tuple[Claim, ...] = ()) -> str:
    return "\n".join(lines(page(traced, claims), Console(width=width)))


def flat(words: str) -> str:
    return " ".join(words.split())


def test_it_begins_with_a_number_and_a_name() -> None:
    assert flat(text()).startswith(
        "1.0 GiB of uncounted memory was taken in 10 s and is still held, all of it by "
        "shop/cart-6b8d5c7f4-x2x9z/worker: packet ring."
    )


def test_the_row_says_who_through_what_how_sure_and_how_it_comes_back() -> None:
    found = flat(text())
    for words in (
        "exactly: each page was looked at again", "taken by rings (pid 4711)",
        "through packet_set_ring < packet_setsockopt", "to get it back: end the process",
        "Uncounted memory: 1.5 GiB, 1.0 GiB more than before the trace (+- 18.0 MiB).",
        "Taken and given back, nobody's: 4.5 GiB (unit:iperf.service 4.5 GiB).",
        "Taken, and counted by the ledger: vmalloc 3.0 MiB.",
    ):  # fmt: skip
        assert words in found


def test_what_is_not_certain_says_how_far() -> None:
    row = replace(ROW, least_bytes=1000 * MIB, most_bytes=1100 * MIB)
    assert "at least 1000 MiB, at most 1.1 GiB" in flat(text(replace(TRACED, rows=(row,))))


def test_nobody_is_an_answer() -> None:
    small = replace(ROW, bytes=20 << 10, least_bytes=0, most_bytes=20 << 10)
    for rows in ((), (small,)):
        found = flat(text(replace(TRACED, rows=rows)))
        assert found.startswith("In 10 s nobody took uncounted memory and kept it")
        assert "shop/cart" not in found.partition("Uncounted memory")[0]


def test_a_cap_is_said() -> None:
    capped = replace(TRACED, capped=Capped(2048 * MIB, 100 * MIB))
    said = flat(text(capped))
    assert "2.0 GiB was traced and found held, but uncounted memory grew by 100 MiB" in said
    assert "Whoever gave memory back meanwhile hides as much" in said


def test_two_are_told_by_share() -> None:
    other = replace(ROW, holder="unit:other.service", bytes=512 * MIB)
    found = flat(text(replace(TRACED, rows=(ROW, other))))
    assert "most of it by shop/cart-6b8d5c7f4-x2x9z/worker (67 %)" in found


def test_the_largest_of_three_has_not_most_of_it() -> None:
    others = [replace(ROW, holder=f"unit:o{n}.service", bytes=900 * MIB) for n in (1, 2)]
    found = flat(text(replace(TRACED, rows=(ROW, *others))))
    assert "the largest part by shop/cart-6b8d5c7f4-x2x9z/worker (36 %)" in found


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("packet ring", "close its socket"),
        ("trace buffer", "end the tracing that it is for"),
        ("perf ring buffer", "end the profiler"),
        ("receive ring of a network card", "ethtool -G"),
    ],
)
def test_each_ring_comes_back_in_its_own_way(what: str, words: str) -> None:
    said = flat(text(replace(TRACED, rows=(replace(ROW, what=what),))))
    assert words in said
    assert ("CAP_NET_RAW" in said) == (what == "packet ring")


@pytest.mark.parametrize("width", [80, 40])
def test_hostile_names_neither_steer_the_terminal_nor_widen_it(width: int) -> None:
    evil = "a\x1b[31m b\nc\u202e " + "word " * 30
    row = replace(
        ROW, holder=evil, processes=(TracedProcess(1, evil, 5, False),), stack=(evil, "f" * 9)
    )
    traced = replace(TRACED, rows=(row,), given_back=((evil, 5 * MIB),))
    found = text(traced, width)
    assert "\x1b" not in found
    assert "\u202e" not in found
    assert max(map(len, found.splitlines())) <= width


def test_without_a_trace_the_other_claims_are_left() -> None:
    claim = Claim(
        holder="nvidia", workload=None, cgroup=None, driver="nvidia", bytes=MIB, least_bytes=0,
        most_bytes=9 * MIB, kind="surface", within="residual", is_counted=False,
        source="/proc/slabinfo nvidia_pte_cache", confidence="bound", missing="", give_back="",
    )  # fmt: skip
    found = flat(text(NOBODY_TRACED, claims=(claim,)))
    assert found.startswith("No trace, so who takes memory now is not known")
    assert "Seen without tracing 9.0 MiB at most nvidia (surface, bound)" in found


def test_lost_reports_are_said_with_their_share() -> None:
    rows = list(trace_lacks(replace(TRACED, lost_events=1000, notes=("no second look",))))
    assert rows[0].what == "1,000 of the kernel's reports (50%)"
    assert rows[1].why == "no second look"


@pytest.mark.parametrize(
    ("unread", "words"),
    [
        (Unread("page_trace", "refused", "the kernel is locked down"), "not locked down"),
        (Unread("page_trace", "absent", "no tracefs"), "a kernel with tracefs"),
        (Unread("page_trace", "failed", "x"), "the other sources"),
        (None, "seawall capture --who"),
    ],
)
def test_what_would_let_it_trace(unread: Unread | None, words: str) -> None:
    row = not_traced(unread)
    assert words in row.provide
    if unread is not None:
        assert row.why == unread.detail


@pytest.mark.parametrize("traced", [TRACED, NOBODY_TRACED, replace(TRACED, growth_bytes=None)])
def test_the_document_is_of_its_schema(traced: TraceSum) -> None:
    found = json.loads(
        json.dumps(MEMORY.of(head("memory", Unread("k", "absent"), None), page(traced)))
    )
    jsonschema.validate(found, json.loads((SCHEMAS / "memory.json").read_text()))
    assert ("trace" in found) == traced.has_trace
    if traced.has_trace:
        assert found["by_stack"][0]["bytes"] == 1024 * MIB
        assert found["trace"]["held"][0]["class"] == "ring"
    else:
        assert {"by_stack", "lost_events", "trace"} <= set(found["unread"])


KEPT = SavedClaim(
    holder="a/b/c", workload="a/b/c", cgroup="/x", folder="/sys/fs/cgroup/x", cgroup_inode=7,
    driver=None, kind="ring", what="packet ring", within="residual", bytes=512 * MIB,
    least_bytes=500 * MIB, most_bytes=512 * MIB, source="s", stack=("f",),
    learned_at_unix_seconds=1.0,
)  # fmt: skip


def test_a_watchers_line() -> None:
    words = claim_words(KEPT)
    assert words == "a/b/c holds 512 MiB: packet ring, at least 500 MiB"
    assert claim_words(replace(KEPT, least_bytes=512 * MIB, is_gone=True)) == (
        "a/b/c (gone) holds 512 MiB: packet ring"
    )
    line = text_line("claim", 1_700_000_000.0, "x\n\x1b[31my")
    assert line == "2023-11-14T22:13:20Z  claim     x\\x0a\\x1b[31my"


@pytest.mark.parametrize("has_ledger", [True, False])
def test_a_watchers_document(has_ledger: bool) -> None:
    kept = SavedClaims(
        boot_id="b", written_at_unix_seconds=1.0, base_residual_bytes=5, residual_bytes=6,
        blind="", claims=(KEPT,),
    )  # fmt: skip
    event = WatchEvent("claim", 1_700_000_000.0, "w", kept if has_ledger else None)
    line = render(WATCH.alone(event), indent=None)
    assert "\n" not in line
    found = json.loads(line)
    jsonschema.validate(found, json.loads((SCHEMAS / "watch.json").read_text()))
    assert bool(found["claims"]) == has_ledger == ("residual_bytes" in found)
