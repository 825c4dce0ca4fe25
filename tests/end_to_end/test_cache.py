"""``seawall cache`` of files made by the test, as any user."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.cache_verb import (
    OPENS,
    PAGE,
    SCHEMA,
    cache,
    fill,
    fincore_pages,
    forgets,
    hold,
    keep_only,
    row_of,
    vmtouch_pages,
)
from tests.end_to_end.warm_verbs import seawall


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    if why := forgets(tmp_path):
        pytest.skip(why)
    return tmp_path


def by_cachestat(row: dict[str, Any]) -> bool:
    """Whether this kernel counts dirty and dropped pages (6.5); else they are named unread."""
    if row["method"] == "cachestat":
        return True
    assert {"dirty_bytes", "evicted_bytes"} <= set(row["unread"])
    return False


def kept_row(path: Path, pages: range) -> dict[str, Any]:
    """The row of a file of which these pages are read; a machine that reclaims ahead of need
    (DAMON) may take some at any moment, so it is tried a few times.
    """
    for _ in range(5):
        keep_only(path, pages)
        row = row_of(cache(str(path)), path)
        if row["cached_bytes"] == len(pages) * PAGE:
            break
    return row


def test_part_of_a_file(disk: Path) -> None:
    path = fill(disk / "part", 40)
    row = kept_row(path, range(16, 40))
    status = path.stat()
    assert (row["device"], row["inode"]) == (status.st_dev, status.st_ino)
    assert row["size_bytes"] == 40 * PAGE
    assert row["cached_bytes"] == 24 * PAGE
    assert row["fraction"] == 0.6
    assert row["kind"] == "file"
    if by_cachestat(row):
        assert row["dirty_bytes"] == row["writeback_bytes"] == 0
        assert row["evicted_bytes"] <= 40 * PAGE


def test_peers_count_the_same(disk: Path) -> None:
    for number, (pages, kept) in enumerate(((1, 1), (33, 7), (700, 512), (5, 0))):
        path = fill(disk / f"file{number}", pages)
        for _ in range(5):  # as above
            mine = kept_row(path, range(kept))["cached_bytes"] // PAGE
            peers = (fincore_pages(path), vmtouch_pages(path))
            if all(peer is None or abs(peer - mine) <= 1 for peer in peers):
                break
        assert all(peer is None or abs(peer - mine) <= 1 for peer in peers), (peers, mine)
        assert mine == kept


def test_written_and_not_synced(disk: Path) -> None:
    for _ in range(5):  # the flusher may be quicker than we are
        path = fill(disk / "dirty", 25, sync=False)
        row = row_of(cache(str(path)), path)
        assert row["cached_bytes"] == 25 * PAGE
        if not by_cachestat(row) or row["dirty_bytes"] == 25 * PAGE:
            break
    else:
        pytest.fail("dirty pages were never seen")
    os.sync()
    row = row_of(cache(str(path)), path)
    assert row.get("dirty_bytes", 0) == 0


def test_folder_is_walked_each_file_once(disk: Path) -> None:
    top = disk / "top"
    for folder in ("a", "a/b", "c d"):
        (top / folder).mkdir(parents=True)
    fill(top / "one", 10)
    fill(top / "a/two", 20)
    fill(top / "a/b/three\n\x1b[31m", 30)
    (top / "c d/empty").touch()
    (top / "c d/two again").hardlink_to(top / "a/two")
    (top / "link").symlink_to(top / "one")
    (top / "loop").symlink_to(top)
    os.mkfifo(top / "fifo")
    page = cache(str(top))
    assert page["totals"]["files"] == 4
    assert page["totals"]["folders"] == 4
    assert page["total_cached_bytes"] == page["totals"]["cached_bytes"] == 60 * PAGE
    assert page["totals"]["size_bytes"] == 60 * PAGE
    assert [row["size_bytes"] for row in page["files"]] == [30 * PAGE, 20 * PAGE, 10 * PAGE]
    assert page["files_left_out"] == 1, "the empty one is counted and not listed"
    text = seawall("cache", str(top)).answered().text
    assert "\x1b" not in text
    assert "three\\x0a\\x1b[31m" in text
    assert max(map(len, text.splitlines()[:8])) <= 80


def test_several_paths_and_top(disk: Path) -> None:
    (disk / "folder").mkdir()
    for number in range(5):
        fill(disk / f"folder/{number}", number + 1)
    fill(disk / "big", 9)
    page = cache("--top", "3", str(disk / "folder"), str(disk / "big"), str(disk / "big"))
    assert [row["cached_bytes"] // PAGE for row in page["files"]] == [9, 5, 4]
    assert page["total_cached_bytes"] == (9 + 1 + 2 + 3 + 4 + 5) * PAGE
    assert page["files_left_out"] == 3
    assert page["scope"]["kind"] == "paths"


def test_hole_and_large_size(disk: Path) -> None:
    path = disk / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    row = row_of(cache(str(path)), path)
    assert row["size_bytes"] == 1 << 40
    assert row["cached_bytes"] == 0


def test_open_file_of_a_process(disk: Path) -> None:
    path = fill(disk / "open", 12)
    held = hold(OPENS, path)
    try:
        page = cache("--pid", str(held.pid))
        row = row_of(page, path)
        assert page["scope"] == {"kind": "process", "name": f"pid {held.pid}"}
        assert row["cached_bytes"] == 12 * PAGE
        assert row["processes"] == 1
        assert not row["is_mapped"]
        path.unlink()
        assert row_of(cache("--pid", str(held.pid)), path)["deleted"]
        assert any(row["is_mapped"] for row in page["files"]), "its libraries"
    finally:
        held.communicate()


def test_memfd_cannot_be_dropped() -> None:
    script = (
        "import os, sys; fd = os.memfd_create('held'); os.write(fd, bytes(1 << 20));"
        "print('held', flush=True); sys.stdin.read()"
    )
    held = hold(script, Path("/"))
    try:
        page = cache("--pid", str(held.pid))
        row = row_of(page, "/memfd:held")
        assert row["kind"] == "shmem"
        assert row["cached_bytes"] == 1 << 20
        assert page["totals"]["shmem_bytes"] >= 1 << 20
    finally:
        held.communicate()


def test_node_says_what_it_explains(disk: Path) -> None:
    path = fill(disk / "held", 1000)
    held = hold(OPENS, path)
    try:
        page = cache("--timeout", "40")
        row = row_of(page, path)
        assert row["cached_bytes"] == 1000 * PAGE
        assert 0 < page["explained_fraction"] <= 1
        assert page["total_cached_bytes"] >= row["cached_bytes"]
        text = seawall("cache").answered().text
        assert "in Cached of this machine" in text
        assert "drop_caches" in text
    finally:
        held.communicate()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["/no/such/file"], "no workload"),
        (["--pid", "1", "/tmp"], "give either"),
        (["--pid", "0"], "not a number"),
        (["--pid", "4194305"], "no process 4194305"),
        (["/dev/null"], "neither a file nor a folder"),
        (["--top", "x"], "not a number"),
        (["./no-such-file-here"], "No such file"),
    ],
)
def test_usage(words: list[str], said: str) -> None:
    ran = seawall("cache", *words)
    assert ran.status == 2
    assert said in ran.err.decode()
    assert "Traceback" not in ran.err.decode()


def test_recording_does_not_hold_it(tmp_path: Path) -> None:
    bundle = tmp_path / "node.bundle"
    assert seawall("capture", "--for", "2", "-o", str(bundle)).status == 0
    page = cache("--from", str(bundle))
    assert {"files", "total_cached_bytes"} <= set(page["unread"])
    assert "does not record it" in page["could_not_see"][0]["why"]
    assert "does not record it" in seawall("cache", "--from", str(bundle)).answered().text


def test_timeout_says_what_was_not_reached(tmp_path: Path) -> None:
    """So little time that not even this folder is reached."""
    for number in range(300):
        (tmp_path / f"{number}").mkdir()
    page = cache("--timeout", "0.001", str(tmp_path))
    rows = [row for row in page["could_not_see"] if row["provide"] == "a longer --timeout"]
    assert rows, page["could_not_see"]


def test_dirty_section() -> None:
    page = cache("--dirty")
    assert "dirty" in page
    assert "files" in page["unread"]
    assert "dirty" in SCHEMA["properties"]
    assert "has to reach a disk" in seawall("cache", "--dirty").answered().text


def test_progress_is_on_stderr_and_seldom(disk: Path) -> None:
    (disk / "x").touch()
    ran = seawall("cache", str(disk)).answered()
    assert ran.err == b"", "a short scan says nothing"
