"""What the self-test says of a guard that can kill and may signal nobody: no cgroup is needed."""

import builtins
import os
from pathlib import Path
from typing import Any

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.orders import Mounts, Order, Outcome
from seawall.guard import own_capabilities
from seawall.guard.own_capabilities import KILL, lacks
from seawall.guard.self_test import NAME, SelfTest

STATUS = "CapPrm:\t{0}\nCapEff:\t{0}\nCapBnd:\t000001ffffffffff\n"
ALL, ALL_BUT_KILL = "000001ffffffffff", "000001ffffffffdf"
CAVEAT = ", by cgroup.kill only: without CAP_KILL nobody of another user gets SIGTERM first"


class Deadly(Observer):
    """Whatever is to be killed is gone."""

    def perform(self, order: Order) -> Outcome:
        return Outcome(order, is_done=True, processes=1, seconds=0.004)


class Aide:
    """Whose child is another user's."""

    def send(self, request: dict[str, Any], /) -> bool:
        return bool(request)

    def take(self, kind: str, /) -> dict[str, Any] | None:
        return {"pid": 7, "still_root": "", "kind": kind}


def proved(tmp_path: Path, *, has_kill_file: bool = True) -> str:
    """Its words, on a tree of ordinary files."""
    mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
    test = SelfTest(Deadly(mounts, (), Journal("")), Aide(), mounts, "/own")
    (tmp_path / "own").mkdir()
    assert test.prepare() == ""
    folder = tmp_path / "own" / NAME
    (folder / "cgroup.procs").write_text("7\n")
    if has_kill_file:
        (folder / "cgroup.kill").touch()
    test.begin(1.0)
    words = test.poll(1.0)
    assert words is not None
    assert test.is_proved, words
    test.close()
    return words


@pytest.mark.parametrize("has_kill_file", [True, False])
@pytest.mark.parametrize("is_lacking", [True, False])
def test_a_guard_that_may_not_signal_others_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_lacking: bool, has_kill_file: bool
) -> None:
    """It is proved all the same: cgroup.kill asks nobody whose they are."""
    monkeypatch.setattr(own_capabilities, "lacks", lambda number: is_lacking and number == KILL)
    monkeypatch.setattr("seawall.guard.pid_namespace.is_own", lambda: False)
    words = proved(tmp_path, has_kill_file=has_kill_file)
    caveat = CAVEAT if is_lacking and has_kill_file else ""
    assert words == f"can kill: proved 0 s ago in 4 ms{caveat}"


def test_it_is_read_once_and_before_it_is_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = open

    def noted(path: Any, *others: Any, **more: Any) -> Any:
        opened.append(str(path))
        return real(path, *others, **more)

    mounts = Mounts(str(tmp_path / "none"), 2, None, None)
    test = SelfTest(Deadly(mounts, (), Journal("")), Aide(), mounts, "/own")
    monkeypatch.setattr(builtins, "open", noted)
    for _ in range(3):  # where no test cgroup can be made it is tried again
        assert test.prepare().startswith("no test cgroup could be made")
    assert opened == ["/proc/self/status"]


def test_what_a_process_lacks(tmp_path: Path) -> None:
    path = tmp_path / "status"
    for held, is_lacking in ((ALL, False), (ALL_BUT_KILL, True), ("0", True)):
        path.write_text(STATUS.format(held))
        assert lacks(KILL, str(path)) == is_lacking
    path.write_text("CapPrm:\t0\n")
    assert not lacks(KILL, str(path)), "what cannot be read is not lacking"
    assert not lacks(KILL, str(tmp_path / "none"))
    if os.geteuid():
        assert lacks(KILL)
