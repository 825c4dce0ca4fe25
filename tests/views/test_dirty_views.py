"""Dirty pages as text and as a part of a document."""

import json
import re

import pytest
from tests.accounts.test_dirty import NODE, V2, dirty_of

from seawall.accounts.cache.dirty_thresholds import DirtyLimits
from seawall.views.dirty_text import lines, state
from seawall.views.documents.cache_document import DIRTY
from seawall.views.documents.document_fields import object_of
from seawall.views.terminal import Console


def prose(text: bytes) -> str:
    return re.sub(r"\s+", " ", " ".join(lines(dirty_of(text), Console())))


def test_who_writes_and_who_waits() -> None:
    text = prose(V2)
    assert "97.7 MiB has to reach a disk (87.9 MiB dirty, 9.8 MiB being written)" in text
    assert "nobody waits for the node's limit, and only what is old is written" in text
    first = "Made to wait for dirty pages: pid 7 dd of /pod/c: in balance_dirty_pages. /pod/c is"
    assert text.startswith(f"{first} over its own limit: 79.2 MiB to write, and its writers are")
    # 436,870,912 bytes: 10 and 20 % of them, and the middle.
    assert re.search(r"/pod/c 75\.3 MiB 3\.8 MiB 62\.5 MiB 83\.3 MiB 40 %", text)
    assert "Of 2 processes in state D 1 are made to wait for dirty pages" in text
    assert "pid 7 dd of /pod/c: in balance_dirty_pages" in text
    assert "1 more whose place in the kernel is not told" in text


def test_settings_in_bytes_of_this_host() -> None:
    text = prose(V2)
    assert (
        "vm.dirty_background_ratio 10: the flusher begins at 230 MiB, 10 % of the 2.3 GiB" in text
    )
    assert "writers are slowed from 348 MiB and stop at 465 MiB" in text
    assert "not all 3.8 GiB" in text
    assert "every 5 s the flusher writes what has been dirty for 30 s" in text
    assert "A container of 512 MiB on cgroup v2" in text
    assert "slowed from 76.8 MiB and stopped at 102 MiB" in text
    never = prose(V2.replace(b"_centisecs\n500\n", b"_centisecs\n0\n"))
    assert "nothing is written for its age" in never
    fixed = prose(V2.replace(b"/dirty_bytes\n0\n", b"/dirty_bytes\n104857600\n"))
    assert "vm.dirty_bytes 104,857,600" in fixed
    assert "vm.dirty_ratio does not count" in fixed


def test_what_the_commands_do_and_do_not() -> None:
    text = prose(b"why: bare\n" + NODE)
    assert "it drops nothing from the cache" in text
    assert "and not one dirty page" in text
    assert "Whose they are: unknown." in text
    assert "processes could not be seen" in text


@pytest.mark.parametrize(
    ("waits", "words"),
    [(9, "node's limit, and only"), (11, "in the background"), (16, "slowed"), (20, "stop now")],
)
def test_four_states(waits: int, words: str) -> None:
    assert words in state(waits, DirtyLimits(background=10, limit=20))


def test_lines_fit_and_names_steer_nothing() -> None:
    text = V2.replace(b"7 (dd)", b"7 (d\x1b[2J)").replace(b"/pod/c/", b"/pod/c\x1b/")
    shown = list(lines(dirty_of(text), Console()))
    assert not [line for line in shown if len(line) > 80]
    assert not [line for line in shown if "\x1b" in line]
    assert any("d\\x1b[2J" in line for line in shown)


def test_the_part_of_a_document() -> None:
    page = object_of(dirty_of(V2), DIRTY)
    json.dumps(page, allow_nan=False)
    assert page["dirty_bytes"] == 22_500 * 4096
    assert page["limits"] == {
        "background_bytes": 59_000 * 4096,
        "slowed_from_bytes": 89_000 * 4096,
        "stop_bytes": 119_000 * 4096,
    }
    (one,) = page["workloads"]
    assert (one["workload"], one["dirty_bytes"]) == ("/pod/c", 79_000_000)
    assert one["io_stalled_fraction"] == 0.4
    assert page["waiting_processes"] == 2
    assert [(row["pid"], row["is_throttled"]) for row in page["waiters"]] == [(7, True)]
    assert page["unread"] == []


def test_what_was_not_read_is_named() -> None:
    page = object_of(dirty_of(b"why: bare\n" + NODE[: NODE.index(b"=== /proc/zoneinfo")]), DIRTY)
    assert {"dirtyable_bytes", "computed_limits", "expire_seconds", "waiting_processes"} <= set(
        page["unread"]
    )
    assert "limits" in page
