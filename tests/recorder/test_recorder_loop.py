# SPDX-License-Identifier: Apache-2.0
"""When the loop looks and what it tells the guard, by a clock of the test's own."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest

from seawall.guard.tick_facts import Group
from seawall.host.recording import Round
from seawall.recorder import recorder_loop as module
from seawall.recorder.recorder_loop import RecorderLoop


class _Machine:
    """Time, and a processor that a look takes for so long."""

    def __init__(self, cost: float = 0.0) -> None:
        self.now, self.spent, self.cost = 0.0, 0.0, cost
        self.looks: list[tuple[str, float]] = []
        self.began_anew = 0
        self.is_fast = True
        self.groups: tuple[Group, ...] = ()
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.fd, self.problem, self.not_judged = -1, "", ""

    # --- the clock

    def monotonic(self) -> float:
        return self.now

    def thread_time(self) -> float:
        return self.spent

    # --- the samples

    def quick(self) -> Round:
        self.spent += self.cost
        return Round()

    def light(self, _groups: Iterable[Group]) -> Round:
        return Round()

    def ask_names(self) -> None:
        raise AssertionError("in peace only")

    # --- the story

    def sampled(self, _round: Round, of: str) -> None:
        self.looks.append((of, self.now))

    def tend(self, _now: float) -> None:
        pass

    def wants_full(self, _now: float) -> bool:
        return False

    def begin_anew(self) -> None:
        self.began_anew += 1

    # --- the ear

    def tell(self, kind: str, **told: Any) -> bool:
        self.told.append((kind, told))
        return True

    def is_told(self, kind: str) -> int:
        return sum(one == kind for one, _ in self.told)


def _loop(
    machine: _Machine, monkeypatch: pytest.MonkeyPatch, **writer: object
) -> tuple[RecorderLoop, SimpleNamespace]:
    monkeypatch.setattr(module, "time", machine)
    figures = {"problem": "", "remark": "", "opened": 1, "gaps": 0, "is_settled": True,
               "last_tick": 41, "written_unix": 1.7e9,
               "written_seconds": 990.0}  # fmt: skip
    file = SimpleNamespace(**(figures | writer))
    ear: Any = SimpleNamespace(fd=0, tell=machine.tell)
    made: Any = machine
    return RecorderLoop(ear, file, made, made, made), file  # type: ignore[arg-type]


def _go(recorder_loop: RecorderLoop, machine: _Machine, seconds: float) -> None:
    for _ in range(round(seconds * 100)):
        machine.now += 0.01
        recorder_loop._greet(1)
        recorder_loop._look()


@pytest.mark.parametrize(
    ("cost", "quick"), [(0.0, 90), (0.001, 90), (0.004, 50), (0.01, 20), (0.018, 10), (0.5, 0)]
)
def test_where_a_look_costs_much_there_are_fewer_and_still_one_a_second(
    cost: float, quick: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = _Machine(cost)
    recorder_loop, _ = _loop(machine, monkeypatch)
    _go(recorder_loop, machine, 10.5)
    looks = [of for of, now in machine.looks if now > 0.5]
    assert looks.count("light") == 10
    assert looks.count("quick") == pytest.approx(quick, abs=3)
    assert machine.spent <= 0.02 * 10.5 + 2 * cost


def test_losses_are_noticed_and_not_for_each_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine()
    recorder_loop, file = _loop(machine, monkeypatch)
    _go(recorder_loop, machine, 1)
    assert machine.began_anew == 1  # the file was opened
    for _ in range(100):
        file.gaps += 1
        _go(recorder_loop, machine, 0.1)
    assert machine.began_anew in (2, 3)
    _go(recorder_loop, machine, 6)
    last = machine.began_anew
    _go(recorder_loop, machine, 60)
    assert machine.began_anew == last <= 4
    file.opened += 1
    _go(recorder_loop, machine, 0.01)
    assert machine.began_anew == last + 1


def test_what_was_not_understood_is_asked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine()
    recorder_loop, _ = _loop(machine, monkeypatch)
    _go(recorder_loop, machine, 30)
    assert machine.is_told("hello") == 1
    assert recorder_loop._heard.take(b"T nonsense") == []
    _go(recorder_loop, machine, 5)
    assert machine.is_told("hello") == 2
    [*_, state] = [told for kind, told in machine.told if kind == "state"]
    assert "1 messages" in state["remark"]
    assert state["problem"] == ""


def test_what_is_written_all_the_same_is_no_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = _Machine()
    machine.problem = "/dev/kmsg: Operation not permitted"
    recorder_loop, _ = _loop(machine, monkeypatch, remark="goes on with its 64 MiB")
    _go(recorder_loop, machine, 1)
    [(kind, told)] = [one for one in machine.told if one[0] == "state"]
    assert (kind, told["problem"]) == ("state", "")
    assert told["remark"] == "goes on with its 64 MiB; /dev/kmsg: Operation not permitted"
