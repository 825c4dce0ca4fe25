"""It proves on a real child that it can kill, and says so loudly when it cannot."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.actions.cgroups_v1 import ROOT, group, hands, missing, mounts, remove
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions.hands import Hands
from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.guard import aide as aide_process
from seawall.guard.self_test import NAME, SelfTest, remove_leftovers

pytestmark = [pytest.mark.system, pytest.mark.skipif(missing() is not None, reason=str(missing()))]
OWN = f"/seawall-TEST-own-{os.getpid()}"


@pytest.fixture
def aide() -> Iterator[aide_process.Aide]:
    made = aide_process.start()
    yield made
    made.close()


@pytest.fixture
def own() -> Iterator[str]:
    """Our own cgroup, as far as the self-test is told."""
    with group(OWN):
        yield OWN


def finished(test: SelfTest) -> str:
    """Its sentence, asked for as the loop does."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        words = test.poll(time.monotonic())
        if words:
            return words
        time.sleep(0.02)
    pytest.fail("the test does not end")


def test_it_can(tmp_path: Path, own: str, aide: aide_process.Aide) -> None:
    """Nothing else is in the scope, and what was made goes away again."""
    test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    assert test.words(0) == "can kill: not proved yet"
    assert test.prepare() == ""
    for _ in range(3):
        test.begin(time.monotonic())
        assert finished(test).startswith("can kill: proved 0 s ago in ")
    assert test.is_proved
    assert test.words(test.proved_at + 12).startswith("can kill: proved 12 s ago in ")
    assert (ROOT / "freezer" / own[1:] / NAME).exists()
    test.close()
    assert not (ROOT / "freezer" / own[1:] / NAME).exists()
    assert not (ROOT / "memory" / own[1:] / NAME).exists()


def test_what_it_hangs_on_in_the_freezer_is_removed_too(
    tmp_path: Path, aide: aide_process.Aide
) -> None:
    """systemd's units have no cgroup of their own there."""
    with group(OWN, ("memory",)):
        test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), OWN)
        assert test.prepare() == ""
        test.begin(time.monotonic())
        assert finished(test).startswith("can kill: proved")
        test.close()
        assert not (ROOT / "freezer" / OWN[1:]).exists()


def test_a_guard_that_may_not_signal(tmp_path: Path, own: str, aide: aide_process.Aide) -> None:
    """The identity check is what refuses here; any other refusal is told the same way."""
    made = hands("/nowhere", tmp_path)
    test = SelfTest(made, aide, mounts(), own)
    test.prepare()
    made.allow("/elsewhere")
    test.begin(time.monotonic())
    assert finished(test) == "CANNOT KILL: outside the scope: nothing is ever done there"
    assert test.is_proved is False
    made.allow(f"{own}/{NAME}")
    test.begin(time.monotonic())
    assert finished(test).startswith("can kill: proved")
    test.close()


class Silent:
    """An aide that takes requests and does nothing, or takes none."""

    def __init__(self, answer: dict[str, Any] | None = None, *, takes: bool = True) -> None:
        self.answer, self.takes = answer, takes

    def send(self, request: dict[str, Any], /) -> bool:
        return self.takes

    def take(self, kind: str, /) -> dict[str, Any] | None:
        return self.answer


def test_no_child_is_no_proof(tmp_path: Path, own: str) -> None:
    made = hands("/nowhere", tmp_path)
    test = SelfTest(made, Silent(), mounts(), own)
    test.prepare()
    now = time.monotonic()
    test.begin(now)
    assert test.poll(now + 1) is None
    assert test.poll(now + 60) == "CANNOT KILL: no child came from the aide within 5 s"
    test.close()
    test = SelfTest(made, Silent({"pid": 0, "problem": "no room"}), mounts(), own)
    test.prepare()
    test.begin(now)
    assert test.poll(now) == "CANNOT KILL: no room"
    test.close()
    test = SelfTest(made, Silent(takes=False), mounts(), own)
    test.prepare()
    test.begin(now)
    assert test.words(now) == "CANNOT KILL: the aide takes no request for a child"
    test.close()


def test_no_place_is_told(tmp_path: Path) -> None:
    made: Hands | Observer = Observer(mounts(), (), Journal(str(tmp_path / "undo")))
    gone = mounts()._replace(memory="/proc/1", freezer=None)
    test = SelfTest(made, Silent(), gone, "/x")
    assert test.prepare().startswith("no test cgroup could be made: /proc/1/")
    assert test.words(0).startswith("CANNOT KILL: no test cgroup could be made")


def test_what_a_killed_guard_left_is_removed_and_a_living_ones_stays(
    own: str, tmp_path: Path, aide: aide_process.Aide
) -> None:
    test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    assert test.prepare() == ""
    folders = [str(ROOT / tree / own[1:] / NAME) for tree in ("memory", "freezer")]
    procs = ROOT / "memory" / own[1:] / "cgroup.procs"
    with subprocess.Popen(["sleep", "60"]) as guard:
        procs.write_text(str(guard.pid))
        assert not set(folders) & set(remove_leftovers(mounts()))
        guard.kill()
    assert set(folders) <= set(remove_leftovers(mounts()))
    assert not any(map(os.path.exists, folders))
    test.close()


def test_two_guards_of_one_cgroup_have_a_test_each(
    own: str, tmp_path: Path, aide: aide_process.Aide
) -> None:
    first = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    second = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own, f"{NAME}-second")
    assert (first.prepare(), second.prepare()) == ("", "")
    second.close()
    first.begin(time.monotonic())
    assert finished(first).startswith("can kill: proved")
    first.close()


def test_one_that_is_put_off_takes_nothing_back(tmp_path: Path, own: str) -> None:
    test = SelfTest(hands("/nowhere", tmp_path), Silent(), mounts(), own)
    test.prepare()
    test.begin(time.monotonic())
    assert test.is_waiting
    test.put_off()
    assert not test.is_waiting
    assert test.poll(time.monotonic() + 60) is None
    assert test.words(0) == "can kill: not proved yet"
    test.close()


def test_what_an_earlier_guard_left_is_used(
    tmp_path: Path, own: str, aide: aide_process.Aide
) -> None:
    left = ROOT / "memory" / own[1:] / NAME
    left.mkdir()
    test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    assert test.prepare() == ""
    test.begin(time.monotonic())
    assert finished(test).startswith("can kill: proved")
    test.close()
    assert not left.exists()
    remove(ROOT / "memory" / own[1:])
