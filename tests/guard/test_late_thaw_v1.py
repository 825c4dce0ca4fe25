"""A guard that is stopped while it holds somebody: its aide thaws, and nothing but that."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.actions.cgroups_v1 import (
    ROOT,
    group,
    hands,
    in_force,
    missing,
    mounts,
    remove,
    wait_until,
)
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions.executor import Executor
from seawall.actions.freeze_effects import Freezes
from seawall.actions.journal import Change, Journal
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.undo import undo
from seawall.actions.work import Work
from seawall.guard import aide_process
from seawall.guard.assembly import assemble
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.handover import GuardHandover
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.tell.late_thaw import LateThaw
from seawall.guard.watcher_link import WatcherLink

pytestmark = [
    pytest.mark.system,
    pytest.mark.beside,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
NAME = f"/seawall-TEST-late-{os.getpid()}"
OWN = f"{NAME}-own"
SECONDS = 2.0
THAWED, FROZEN = "THAWED\n", "FROZEN\n"


def handed(folder: Path) -> GuardHandover:
    settings = Settings(mode="enforce", scope=(NAME,), freeze_seconds=SECONDS)
    return GuardHandover(
        settings=settings, config_path="", mounts=mounts(), own_cgroup=OWN, boot_id="0" * 36,
        folder=str(folder), lock_fd=-1, other_guard_pid=0, watcher_fd=-1, watcher_pid=0, others=(),
    )  # fmt: skip


class Guard:
    """As it is put together, without its loop, in a process of its own that can be stopped."""

    def __init__(self, does: Callable[[Executor], None], folder: Path) -> None:
        ours, theirs = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            status = 1
            try:
                aide = aide_process.start()
                links = WatcherLink(None), RecorderLink(None), ConfigWatch("/none")
                made = assemble(handed(folder), aide, *links)[0].hands
                assert isinstance(made, Executor)
                does(made)
                os.write(theirs, b"%d" % aide.pid)
                while True:
                    time.sleep(0.02)
                    made.tend(time.monotonic())
            finally:
                os._exit(status)
        os.close(theirs)
        self.aide = int(os.read(ours, 20))
        os.close(ours)

    def tell(self, number: int) -> None:
        os.kill(self.pid, number)


@pytest.fixture
def guards() -> Iterator[list[Guard]]:
    made: list[Guard] = []
    with group(OWN):
        yield made
        for guard in made:
            guard.tell(signal.SIGKILL)
            os.waitpid(guard.pid, 0)


def test_whom_a_stopped_guard_holds_is_thawed(tmp_path: Path, guards: list[Guard]) -> None:
    with group(NAME) as top:
        (child,) = top.sleepers(1)
        order = top.order("freeze")

        def freeze_and_stop(made: Executor) -> None:
            made.perform(order)

        began = time.monotonic()
        guards.append(Guard(freeze_and_stop, tmp_path))
        guards[0].tell(signal.SIGSTOP)
        assert top.freezer().read_text() == FROZEN
        wait_until(lambda: top.freezer().read_text() == THAWED, 4)
        # Not before the guard itself had the time for it.
        assert time.monotonic() - began >= SECONDS + 1
        assert child.poll() is None
        # It goes on as if nothing had been, and strikes it out.
        assert len(in_force(tmp_path)) == 1
        guards[0].tell(signal.SIGCONT)
        wait_until(lambda: in_force(tmp_path) == [])


def test_whom_a_killed_guard_held_is_thawed_at_once(tmp_path: Path, guards: list[Guard]) -> None:
    """Where nobody runs ``guard undo`` behind it, and the next one comes in minutes."""
    with group(NAME) as top:
        top.sleepers(1)
        order = top.order("freeze")
        guards.append(Guard(lambda made: made.perform(order) and None, tmp_path))
        assert top.freezer().read_text() == FROZEN
        guards[0].tell(signal.SIGKILL)
        wait_until(lambda: top.freezer().read_text() == THAWED, 1)


def test_what_another_froze_since_stays(tmp_path: Path, guards: list[Guard]) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        order = top.order("freeze")

        def freeze_and_thaw(made: Executor) -> None:
            made.perform(order)
            made.perform(order._replace(step="thaw"))

        guards.append(Guard(freeze_and_thaw, tmp_path))
        guards[0].tell(signal.SIGSTOP)
        assert top.freezer().read_text() == THAWED
        top.freezer().write_text("FROZEN")
        time.sleep(SECONDS + 2)
        assert top.freezer().read_text() == FROZEN


def test_a_later_freeze_has_its_own_time(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        late, told = LateThaw(), list[tuple[str, Change, float]]()
        journal = Journal(str(tmp_path / "guard.undo"))
        made = Executor(mounts(), (NAME,), journal, tell=lambda *what: told.append(what))
        made.prepare()

        def tell_last() -> float:
            journal_path, change, until = told[-1]
            late.watch({"journal": journal_path, "change": list(change), "until": until})
            return until

        made.perform(top.order("freeze"))
        first = tell_last()
        made.perform(top.order("thaw"))
        time.sleep(0.3)
        made.perform(top.order("freeze"))
        second = tell_last()
        assert late.tend(first + 1.1) == []
        assert top.freezer().read_text() == FROZEN
        assert late.tend(second + 1.1) == [f"{ROOT}/freezer{NAME}: thawed, for the guard does not"]
        assert top.freezer().read_text() == THAWED
        assert not late.is_waiting
        # Once; whoever froze it now is another.
        top.freezer().write_text("FROZEN")
        assert late.tend(second + 60) == []
        assert top.freezer().read_text() == FROZEN


def test_one_that_came_again_is_left_alone(tmp_path: Path) -> None:
    """The same path, another inode; the guard has not noticed yet."""
    with group(NAME) as top:
        top.sleepers(1)
        late = LateThaw()
        journal = Journal(str(tmp_path / "guard.undo"))

        def tell(path: str, change: Change, until: float) -> None:
            late.watch({"journal": path, "change": list(change), "until": until})

        made = Executor(mounts(), (NAME,), journal, tell=tell)
        made.prepare()
        assert made.perform(top.order("freeze")).is_done
        top.freezer().write_text("THAWED")
        for folder in top.folders:
            remove(folder)
            folder.mkdir()
        top.sleepers(1)
        top.freezer().write_text("FROZEN")
        assert late.tend(time.monotonic() + 60) == []
        assert top.freezer().read_text() == FROZEN


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_whom_it_held_is_thawed_although_somebody_removed_its_journal(
    tmp_path: Path, guards: list[Guard], number: int
) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        order = top.order("freeze")
        guards.append(Guard(lambda made: made.perform(order) and None, tmp_path))
        (tmp_path / "guard.undo").unlink()
        guards[0].tell(number)
        assert top.freezer().read_text() == FROZEN
        wait_until(lambda: top.freezer().read_text() == THAWED, 4)


def test_a_slow_guard_kills_whom_the_aide_has_thawed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its kill it freezes anew; in the middle of it, it knows that some may have forked."""
    with group(NAME) as top:
        children = top.sleepers(3)
        made = hands(NAME, tmp_path)
        made.perform(top.order("freeze"))
        top.freezer().write_text("THAWED")
        seen: list[tuple[str, int]] = []
        works: list[Work] = []
        send = SignalEffects.send

        def sent(
            self: SignalEffects, folder: int, version: int, number: int, work: Work
        ) -> set[int]:
            seen.append((top.freezer().read_text(), len(in_force(tmp_path))))
            works.append(work)
            found = send(self, folder, version, number, work)
            top.freezer().write_text("THAWED")
            return found

        monkeypatch.setattr(SignalEffects, "send", sent)
        outcome = made.perform(top.order())
        assert seen[0] == (FROZEN, 2), "that it stands still, and that it gets a signal"
        assert works[0].may_have_forked
        assert (outcome.is_done, outcome.processes, outcome.left) == (True, 3, 0)
        assert [child.wait(5) for child in children] == [-signal.SIGKILL] * 3
        made.signal_journal.settle()
        assert in_force(tmp_path) == []


def test_who_thawed_it_before_is_no_freeze_of_ours(tmp_path: Path) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        journal = Journal(str(tmp_path / "guard.undo"))
        journal.open()
        freezes = Freezes(journal, SECONDS)
        fd = os.open(top.freezer().parent, os.O_RDONLY)
        work = Work(top.order("freeze"))
        assert freezes.freeze((fd, 1), str(top.freezer().parent), work)
        first = freezes.active[0].deadline
        assert freezes.freeze((fd, 1), str(top.freezer().parent), work)
        assert freezes.active[0].deadline == first
        top.freezer().write_text("THAWED")
        assert freezes.freeze((fd, 1), str(top.freezer().parent), work)
        assert top.freezer().read_text() == FROZEN
        assert len(freezes.active) == len(in_force(tmp_path)) == 1
        assert freezes.active[0].deadline > first
        assert freezes.thaw(freezes.active[0])
        os.close(fd)


def test_what_another_froze_behind_a_killed_guard_is_not_thawed_by_the_next(
    tmp_path: Path, guards: list[Guard]
) -> None:
    with group(NAME) as top:
        top.sleepers(1)
        order = top.order("freeze")
        guards.append(Guard(lambda made: made.perform(order) and None, tmp_path))
        guards[0].tell(signal.SIGKILL)
        wait_until(lambda: top.freezer().read_text() == THAWED, 1)
        wait_until(lambda: in_force(tmp_path) == [], 1)
        top.freezer().write_text("FROZEN")
        next_one = Journal(str(tmp_path / "guard.undo"))
        assert undo(next_one) == []
        next_one.close()
        assert top.freezer().read_text() == FROZEN
