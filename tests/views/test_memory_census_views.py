"""``seawall memory --census`` as text and as JSON, on machines written down by hand."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.accounts.test_census import PAGE, meminfo, taken, whole, zoneinfo
from tests.accounts.test_census_agreement import LINES, NO_SLABINFO, ledger
from tests.accounts.test_census_cgroups import PATHS, TREE, UNREAD
from tests.accounts.test_ledger import meminfo as meminfo_file
from tests.end_to_end.warm_verbs import seawall
from tests.host.page_files import word

from seawall.accounts.census.census_agreement import agreements_of
from seawall.accounts.census.cgroups import by_cgroup
from seawall.accounts.census.frame_census import census_of
from seawall.host.host import Unread
from seawall.readings.page_census import CHARGED, PageCensus
from seawall.views.memory_census_page import CensusPage
from seawall.views.memory_census_text import lines
from seawall.views.memory_census_unseen import unseen_rows
from seawall.views.terminal import Console

SCHEMA = json.loads((files("seawall.views") / "schemas/memory.json").read_text())
EVIL = "/pods/\x1b[31mred\n" + "x" * 200

COUNTED = whole({
    ("BUDDY", 0): 4000, ("LRU UPTODATE", 21): 2000, ("LRU UPTODATE DIRTY", 20): 1000,
    ("LRU UPTODATE SWAPBACKED", 22): 500, ("LRU UPTODATE ANON SWAPBACKED MMAP", 21): 1500,
    ("SLAB", 0): 600, ("PGTABLE", 21): 100, ("HUGE", 0): 200, ("MMAP", 21): 40, ("", 0): 60,
    ("RESERVED", 0): 30,
})  # fmt: skip


def page(counted: PageCensus = COUNTED, **changes: Any) -> CensusPage:
    census = census_of(counted, meminfo(10_000), [zoneinfo(10_000, 10)])
    made: dict[str, Any] = {
        "census": census,
        "agreements": agreements_of(census, [ledger(40, **LINES)], NO_SLABINFO),
        "cgroups": by_cgroup(counted, TREE, {**PATHS, 22: EVIL}, UNREAD),
        "unseen": tuple(unseen_rows(counted, exact=False)),
        "bundle_notes": (),
    }
    return CensusPage(**(made | changes))


def text(shown: CensusPage, paper: Console | None = None) -> str:
    return "\n".join(lines(shown, paper or Console()))


def test_text_of_a_whole_census() -> None:
    words = text(page())
    assert "All 10,030 page frames were looked at" in words
    assert "\n15.6 MiB   40 %  #####.......  free\n" in words
    assert " 200 KiB  0.5 %  #...........  kernel pages         nobody pays: no flag tells" in words
    assert " 160 KiB  0.4 %  #...........  mapped kernel pages" in words
    assert "RAM outside MemTotal: reserved 120 KiB." in words
    assert "3.9 MiB dirty" in words
    assert "the largest difference is 0.00 % of MemTotal" in words
    assert "14.2 MiB  /pods/a" in words
    assert "5.9 MiB of it is left in cgroups without a process." in words
    assert "mapped into programs: 160 KiB, paid by /pods/a" in words.replace("\n", " ")


def test_text_names_the_lines_that_differ() -> None:
    census = page().census
    assert not isinstance(census, Unread)
    off = agreements_of(census, [ledger(40, **{**LINES, "slab": 100})], NO_SLABINFO)
    words = text(page(agreements=off)).replace("\n", " ")
    assert "these lines differ by more than 0.5 %" in words
    table = words.partition("differ by more")[2]
    assert "slab" in table
    assert "hugetlb" not in table.partition("Who pays")[0]


@pytest.mark.parametrize("colour", [False, True])
def test_text_fits_and_nothing_steers_the_terminal(colour: bool) -> None:
    for counted in (COUNTED, SAMPLED):
        shown = text(page(counted), Console(colour=colour))
        assert "\x1b[31m" not in shown
        plain = text(page(counted))
        assert max(len(line) for line in plain.splitlines()) <= 80


SAMPLED = taken(
    [[0, 0, 52], [word("BUDDY"), 0, 248], [word("LRU UPTODATE") | CHARGED, 21, 100]], 10_000,
    frames_read=400, classes=100, classes_read=4, chunk_frames=1, squares=[[21, 2500]],
    words=[0, word("BUDDY"), word("LRU UPTODATE") | CHARGED],
    samples=[[10, 65, 25], [12, 63, 25], [14, 61, 25], [16, 59, 25]],
)  # fmt: skip


def test_text_of_a_sample_says_its_error() -> None:
    """4 of 100 classes; sqrt(20/3 * 96/100 / 4) * 100 = 126.5 frames, times 7.42 sigmas."""
    words = text(page(SAMPLED, agreements=())).replace("\n", " ")
    assert "1 in 25 of 10,000 page frames" in words
    assert "off by 3.7 MiB at most" in words
    assert "+- 3.7 MiB" in words


def test_text_without_a_census() -> None:
    gone = Unread("/proc/kpageflags", "refused", "Permission denied")
    shown = page(
        census=gone, agreements=(), cgroups=None, unseen=tuple(unseen_rows(gone, exact=False))
    )
    assert text(shown) == "No census: /proc/kpageflags: Permission denied."
    (row,) = shown.unseen
    assert row.provide == "root on the host"


def test_exact_that_was_cut_short_is_not_seen() -> None:
    rows = list(unseen_rows(SAMPLED, exact=True))
    assert rows[0].why == "time was over after 4% of them: the figures are an estimate"
    assert [row.what for row in unseen_rows(SAMPLED, exact=False)] == [
        "who pays for slab", "who holds kernel pages that nobody pays for",
    ]  # fmt: skip


# --- the whole verb, from files ----------------------------------------------------------


def answer(tmp_path: Path, counted: PageCensus | None, page_size: int) -> dict[str, Any]:
    """The document of a bundle that somebody recorded with a census in it."""
    probes: list[list[Any]] = [["page_size", "", page_size]]
    if counted is not None:
        probes.append(["page_census", "", given(counted)])
    round_ = tmp_path / "1"
    (round_ / "files/proc").mkdir(parents=True)
    (round_ / "files/proc/meminfo").write_bytes(meminfo_file(MemTotal=10_000 * page_size >> 10))
    (tmp_path / "MANIFEST.json").write_text(
        json.dumps({"schema": "seawall.bundle/1", "rounds": 1, "files": 1})
    )
    (round_ / "answers.json").write_text(
        json.dumps({"unread": [], "names": [], "links": [], "probes": probes, "same": []})
    )
    found = seawall("memory", "--census", "--json", "--from", str(tmp_path)).answered().document
    jsonschema.validate(found, SCHEMA)
    return found


def given(counted: PageCensus) -> dict[str, Any]:
    """As the probe answered it."""
    names = ("page_size", "frames", "frames_read", "classes", "classes_read", "chunk_frames",
             "seconds", "ranges_from", "has_cgroups")  # fmt: skip
    return {
        **{name: getattr(counted, name) for name in names},
        "counts": [list(row) for row in counted.counts],
        "words": list(counted.words),
        "samples": [list(row) for row in counted.samples],
        "squares": [list(item) for item in counted.squares.items()],
    }


def test_the_schema_knows_the_census() -> None:
    assert {"pages", "outside_pages", "by_cgroup", "sampled", "error_bytes", "agreement"} <= set(
        SCHEMA["properties"]
    )


@pytest.mark.parametrize("page_size", [4096, 65536])
def test_document_of_a_bundle(tmp_path: Path, page_size: int) -> None:
    rows = [list(row) for row in COUNTED.counts]
    found = answer(tmp_path, taken(rows, 10_030, page_size=page_size), page_size)
    assert found["pages"] == {
        kind: n * page_size for kind, n in {
            "free": 4000, "page cache": 3000, "anonymous": 1500, "slab": 600,
            "tmpfs and shared": 500, "hugetlb": 200, "page tables": 100, "kernel pages": 60,
            "mapped kernel pages": 40,
        }.items()
    }  # fmt: skip
    assert found["outside_pages"] == {"reserved": 30 * page_size}
    assert found["of_which"]["dirty_bytes"] == 1000 * page_size
    assert (found["sampled"], found["error_bytes"], found["frames"]) == (None, 0, 10_030)
    assert [row["inode"] for row in found["by_cgroup"]] == [21, 20, 22]
    assert {row["state"] for row in found["by_cgroup"]} == {"not found"}
    assert {"pages", "by_cgroup", "sampled"}.isdisjoint(found["unread"])


def test_document_of_a_sample(tmp_path: Path) -> None:
    found = answer(tmp_path, SAMPLED, PAGE)
    assert found["sampled"] == 0.04
    assert sum(found["pages"].values()) == found["total_bytes"]
    assert found["error_bytes"] == max(found["errors"].values()) > 0


def test_document_without_a_census(tmp_path: Path) -> None:
    found = answer(tmp_path, None, PAGE)
    assert {"pages", "by_cgroup", "sampled", "error_bytes"} <= set(found["unread"])
    assert "sampled" not in found
    row = next(row for row in found["could_not_see"] if row["what"] == "page frames")
    assert "while it runs" in row["provide"]
