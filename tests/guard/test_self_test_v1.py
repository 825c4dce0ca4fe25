"""It proves on a real child that it can kill, and says so loudly when it cannot."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.actions.cgroups_v1 import ROOT, group, hands, missing, mounts, remove
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test

from seawall.actions import cgroup_files
from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.orders import Mounts
from seawall.guard import aide_process, pid_namespace
from seawall.guard.aide import Aide
from seawall.guard.self_test import NAME, SelfTest, remove_leftovers

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]
OWN = f"/seawall-TEST-own-{os.getpid()}"


@pytest.fixture
def aide() -> Iterator[Aide]:
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


def test_it_can(tmp_path: Path, own: str, aide: Aide) -> None:
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


def test_what_it_hangs_on_in_the_freezer_is_removed_too(tmp_path: Path, aide: Aide) -> None:
    """systemd's units have no cgroup of their own there."""
    with group(OWN, ("memory",)):
        test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), OWN)
        assert test.prepare() == ""
        test.begin(time.monotonic())
        assert finished(test).startswith("can kill: proved")
        test.close()
        assert not (ROOT / "freezer" / OWN[1:]).exists()


def test_a_guard_that_may_not_signal(tmp_path: Path, own: str, aide: Aide) -> None:
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


GUARD = """
import sys, time
from pathlib import Path
from tests.guard.test_self_test_v1 import SelfTest, aide_process, finished, hands, mounts

own, folder = sys.argv[1:]
aide = aide_process.start()
test = SelfTest(hands("/nowhere", Path(folder)), aide, mounts(), own)
assert test.prepare() == ""
test.begin(time.monotonic())
print(finished(test), test.is_proved, flush=True)
"""
NOT_PERMITTED = "Operation not permitted"
CANNOT_KILL = (
    f"CANNOT KILL: a process could not be signalled: {NOT_PERMITTED}: CAP_KILL is lacking, or a "
    "security module forbids it False"
)
LIBC = ctypes.CDLL(None, use_errno=True)


def without(capability: int) -> Callable[[], None]:
    """As in a unit whose CapabilityBoundingSet= lacks it (prctl(2), PR_CAPBSET_DROP)."""

    def drop() -> None:
        assert LIBC.prctl(24, capability, 0, 0, 0) == 0

    return drop


def in_a_namespace() -> None:
    """A user namespace that has root and nobody else (user_namespaces(7), CLONE_NEWUSER)."""
    assert LIBC.unshare(0x10000000) == 0
    Path("/proc/self/uid_map").write_text("0 0 1")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (without(5), CANNOT_KILL),
        (without(7), f"could not become another user's: {NOT_PERMITTED}, it needs CAP_SETUID True"),
        (in_a_namespace, "could not become another user's: Invalid argument True"),
    ],
    ids=["no CAP_KILL", "no CAP_SETUID", "namespace"],
)
def test_what_it_may_do_to_other_users_is_not_claimed(
    tmp_path: Path, own: str, first: Callable[[], None], words: str
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", GUARD, own, str(tmp_path)],
        preexec_fn=first,  # noqa: PLW1509 - no other thread runs here
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
    ) as guard:  # fmt: skip
        assert guard.stdout
        # Not to its end: a child that nobody may kill keeps it open.
        said = guard.stdout.readline().strip()
    assert guard.returncode == 0
    assert said.endswith(words)
    if words != CANNOT_KILL:
        assert said.startswith("can kill: proved 0 s ago in ")
        assert " ms, of root's own processes only: its child could not become" in said


ELSEWHERE = """
import sys, time
from pathlib import Path
from tests.guard.test_self_test_v1 import *

own, folder, kind = sys.argv[1:]
place = mounts() if kind == "v1" else Mounts(str(ROOT / "unified"), 2, None, None)
SelfTest._has_kill_file = property(lambda _: kind == "v2")  # since 5.14
aide = aide_process.start()
made = Executor(place, ("/nowhere",), Journal(f"{folder}/guard.undo"))
made.prepare()
test = SelfTest(made, aide, place, own)
assert test.prepare() == ""
test.begin(time.monotonic())
print(pid_namespace.is_own(), finished(test))
test.close()
"""


@pytest.mark.parametrize("kind", ["v1", "v2", "v2 before 5.14"])
@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_in_a_pid_namespace_of_its_own_it_would_reach_only_its_own_child(
    tmp_path: Path, kind: str, is_elsewhere: bool
) -> None:
    """As by ``docker run`` without ``--pid=host``; ``cgroup.kill`` needs nobody's number."""
    if pid_namespace.is_own():
        pytest.skip("this is no first pid namespace itself: run it on the machine")
    if kind != "v1" and not (ROOT / "unified/cgroup.procs").exists():
        pytest.skip("no unified tree is mounted beside v1's")
    trees = ("freezer", "memory") if kind == "v1" else ("unified",)
    away = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"] if is_elsewhere else []
    with group(OWN, trees):
        done = subprocess.run(
            [*away, sys.executable, "-c", ELSEWHERE, OWN, str(tmp_path), kind],
            stdout=subprocess.PIPE, text=True, check=True, cwd=Path(__file__).parents[2],
        )  # fmt: skip
    is_blind = is_elsewhere and kind != "v2"
    words = f"CANNOT KILL: {pid_namespace.CANNOT_KILL}\n" if is_blind else "can kill: proved"
    assert done.stdout.startswith(f"{is_elsewhere} {words}")


@pytest.mark.parametrize("trees", [("memory", "freezer"), ("freezer",), ("memory",)])
def test_a_cgroup_that_somebody_swept_away_is_made_anew(
    tmp_path: Path, own: str, aide: Aide, trees: tuple[str, ...]
) -> None:
    """It is empty: a release agent or a sweeper of empty cgroups may take it."""
    test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    assert test.prepare() == ""
    for came_again in (False, True):
        for tree in trees:
            (ROOT / tree / own[1:] / NAME).rmdir()
            if came_again:
                (ROOT / tree / own[1:] / NAME).mkdir()
        test.begin(time.monotonic())
        assert finished(test).startswith("can kill: proved")
    test.close()
    assert not any((ROOT / tree / own[1:] / NAME).exists() for tree in ("memory", "freezer"))


def test_no_descriptor_is_lost_where_it_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below a threaded cgroup it is tried again every 30 s."""
    monkeypatch.setattr(cgroup_files, "read", lambda _folder, _name: "domain invalid")
    test = SelfTest(hands("/nowhere", tmp_path), None, Mounts(str(tmp_path), 2, None, None), "/x")
    before = len(os.listdir("/proc/self/fd"))
    for now in range(3):
        test.begin(float(now))
        words = test.poll(float(now))
        assert words is not None
        assert words.startswith("CANNOT KILL: no test cgroup could be made")
        assert not test.is_waiting
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_child_that_says_nothing_is_killed_as_whosoever_it_is(tmp_path: Path, own: str) -> None:
    """The aide may be held up just then; what was proved by it is told for what it is."""
    test = SelfTest(hands("/nowhere", tmp_path), Silent(), mounts(), own)
    test.prepare()
    now = time.monotonic()
    test.begin(now)
    with subprocess.Popen(["sleep", "60"]) as child:
        for tree in ("freezer", "memory"):
            (ROOT / tree / own[1:] / NAME / "cgroup.procs").write_text(str(child.pid))
        assert test.poll(now + 1) is None
        words = test.poll(now + 6)
    assert words is not None
    assert words.startswith("can kill: proved 0 s ago in ")
    assert words.endswith(", of root's own processes only: its child did not say whose it is")
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
    made: Executor | Observer = Observer(mounts(), (), Journal(str(tmp_path / "undo")))
    gone = mounts()._replace(memory="/proc/1", freezer=None)
    test = SelfTest(made, Silent(), gone, "/x")
    assert test.prepare().startswith("no test cgroup could be made: /proc/1/")
    assert test.words(0).startswith("CANNOT KILL: no test cgroup could be made")


def test_what_a_killed_guard_left_is_removed_and_a_living_ones_stays(
    own: str, tmp_path: Path, aide: Aide
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


def test_two_guards_of_one_cgroup_have_a_test_each(own: str, tmp_path: Path, aide: Aide) -> None:
    first = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    second = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own, f"{NAME}-second")
    assert (first.prepare(), second.prepare()) == ("", "")
    second.close()
    first.begin(time.monotonic())
    assert finished(first).startswith("can kill: proved")
    first.close()


def test_looks_for_a_child_that_is_late_leave_the_processor_to_who_brings_it(
    tmp_path: Path, own: str
) -> None:
    test = SelfTest(hands("/nowhere", tmp_path), Silent(), mounts(), own)
    test.prepare()
    began = now = time.monotonic()
    test.begin(began)
    looks = 0
    while test.poll(now) is None:
        looks += 1
        now += test.pause_seconds(now)
    assert test.words(now) == "CANNOT KILL: no child came from the aide within 5 s"
    assert looks < 50, "at a fixed pace of 20 ms they would be 250"
    test.begin(now)
    assert test.pause_seconds(now + 0.1) == pytest.approx(0.02), "a child that comes at once"
    test.close()


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


def test_what_an_earlier_guard_left_is_used(tmp_path: Path, own: str, aide: Aide) -> None:
    left = ROOT / "memory" / own[1:] / NAME
    left.mkdir()
    test = SelfTest(hands("/nowhere", tmp_path), aide, mounts(), own)
    assert test.prepare() == ""
    test.begin(time.monotonic())
    assert finished(test).startswith("can kill: proved")
    test.close()
    assert not left.exists()
    remove(ROOT / "memory" / own[1:])
