"""``guard explain`` of keys that are set and do nothing on this machine."""

import os
from pathlib import Path

import pytest
from tests.guard.test_guard_explain import DATA, HERE, V1, V2, flat, of, text

from seawall.guard.explain_document import EXPLAIN
from seawall.guard.explain_paths import cannot_work
from seawall.guard.settings import Settings

STALLED = Settings(stalled=("/system.slice/mine.service",))
PINNED = Settings(pin_slices=("/system.slice",))


def test_no_freezer_no_standstill() -> None:
    """Nobody is stopped before: a SIGKILL to each, time and again."""
    bare = HERE._replace(mounts=V1._replace(freezer=None), has_cgroup_kill=False)
    words = of(Settings(), bare).kills_by
    assert words.startswith("rounds of SIGKILL to a pidfd of each process, until nobody is left")
    assert "SIGSTOP" not in words
    assert of(Settings(), bare._replace(has_cgroup_kill=True)).kills_by.endswith("units (hybrid)")


def test_where_a_datagram_goes() -> None:
    shown = flat(text(of(Settings(datagram_to="[fd00::9]:5140"))))
    assert "datagram sent to [fd00::9]:5140 at every trigger" in shown
    assert "datagram" not in text(of(Settings()))


def test_no_place_for_a_line_over_a_reset(tmp_path: Path) -> None:
    path = str(tmp_path / "pmsg0")
    asked = Settings(pmsg=True)
    assert [*cannot_work(asked, V2, path)] == [
        f"keep a line over a reset: {path} is not there (pmsg)"
    ]
    (tmp_path / "pmsg0").touch()
    assert "is no device (pmsg)" in next(cannot_work(asked, V2, path))
    assert [*cannot_work(asked, None, "/dev/null")] == []
    assert [*cannot_work(Settings(), V2, path)] == []
    is_there = os.path.exists("/dev/pmsg0")
    assert ("Not to be had here" in text(of(asked))) != is_there


def test_a_standstill_that_cannot_be_counted(tmp_path: Path) -> None:
    (what,) = of(STALLED, HERE._replace(mounts=V1)).cannot[1:]
    assert what == (
        "count the standstill of /system.slice/mine.service: cgroup v1 has no memory.pressure "
        "(stalled)"
    )
    folder = tmp_path / "system.slice/mine.service"
    for mounts in (V2._replace(unified=str(tmp_path)), V1._replace(unified=str(tmp_path))):
        assert f"{folder} is not there (stalled)" in next(cannot_work(STALLED, mounts))
    folder.mkdir(parents=True)
    assert "it has no memory.pressure (stalled)" in next(cannot_work(STALLED, mounts))
    (folder / "memory.pressure").touch()
    assert [*cannot_work(STALLED, mounts)] == []


def test_slices_are_protected_by_v2_only() -> None:
    for mounts in (V1, V1._replace(unified="/sys/fs/cgroup/unified")):
        assert "cgroup v1 has no memory.low (pin_slices)" in next(cannot_work(PINNED, mounts))
    assert [*cannot_work(PINNED, V2)] == [*cannot_work(PINNED, None)] == []


WORDS = Settings(
    protect=("shop/db", "shop/gone"), unprotect=("kube-system/*", "/old.slice/*"),
    over_limit_opt_in=("*/job/*",),
)  # fmt: skip


def test_words_by_which_nobody_is_meant() -> None:
    found = of(WORDS)
    assert found.for_nobody == (("protect", "shop/gone"), ("unprotect", "/old.slice/*"))
    shown = flat(text(found))
    assert "Nobody is meant at present by: 2 shop/gone (protect) /old.slice/* (unprotect)" in shown
    page = EXPLAIN.of({}, found)
    assert page["for_nobody"][0] == {"key": "protect", "word": "shop/gone"}
    assert "Nobody is meant" not in text(of(Settings(protect=(DATA.path,))))


def test_nothing_is_said_of_whom_this_process_cannot_see() -> None:
    """To a user names are not told, and without a tree nobody is seen."""
    user = HERE._replace(is_root=False, unseen=(("names and roles of containers", "", "root"),))
    assert of(WORDS, user).for_nobody == (("unprotect", "/old.slice/*"),)
    blind = HERE._replace(seen=(), unseen=(("workloads", "no tree", ""),))
    assert of(WORDS, blind).for_nobody == ()


@pytest.mark.parametrize("most", [20, 100])
def test_many_are_cut(most: int) -> None:
    found = of(Settings(protect=tuple(f"shop/{n:03}" for n in range(most))))
    assert ("and 80 more with --whole" in text(found)) == (most == 100)
    assert max(map(len, text(found).splitlines())) <= 80
