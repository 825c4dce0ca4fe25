"""Answers of the probes on nodes and access: hostile, cut, silent."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import Unread
from seawall.readings import device_access, device_nodes
from seawall.readings.device_access import Access, AccessTarget, Tried
from seawall.readings.device_nodes import DeviceNode, DeviceNodes

UVM = ["/dev/nvidia-uvm", "c", 234, 0, 0o20666, 0, 0]
NODE = DeviceNode("/dev/nvidia-uvm", "c", 234, 0, 0o666, 0, 0)
HOST = {"nodes": [UVM], "links": [["195:255", "../nvidiactl"]], "left_out": 0}
ROW = ["/dev/nvidia-uvm", 1, "c", 234, 0, 438, None]
TARGET = AccessTarget(7, 100, ("/dev/nvidia-uvm",))


class Answers:
    """Answers every probe by what it was asked; keeps the arguments."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self._answer = answer
        self.asked: list[Any] = []

    def ask(self, _probe: str, argument: str = "") -> Any:
        self.asked.append(json.loads(argument))
        return self._answer(self.asked[-1])


def always(answer: Any) -> Any:
    return Answers(lambda _: answer)


def silent_for(pid: int, answer_of: Callable[[int], Any], key: str) -> Any:
    """A machine on which the question about one process hangs."""

    def answer(asked: Any) -> Any:
        pids = [row if key == "pids" else row[0] for row in asked[key]]
        if pid in pids:
            return Unread("probe", "no_answer", "hangs")
        return {key: {str(one): answer_of(one) for one in pids}}

    return Answers(answer)


# --- nodes ------------------------------------------------------------------------------


def test_nodes_of_the_host() -> None:
    host = always({"host": HOST, "pids": {}})
    assert device_nodes.read(host) == DeviceNodes(
        {NODE.path: NODE}, {(195, 255): "../nvidiactl"}, 0
    )
    assert host.asked == [{"pids": []}]


def test_nodes_of_processes() -> None:
    host = always({"host": HOST, "pids": {
        "7": {"nodes": [UVM], "left_out": 0}, "8": {"problem": ["vanished", "it ended"]},
        "9": {"nodes": [], "left_out": 3},
    }})  # fmt: skip
    found = device_nodes.ask(host, (9, 7, 8, 7, 10))
    assert host.asked == [{"pids": [7, 8, 9, 10]}], "the same question for the same pids"
    assert found[7] == {NODE.path: NODE}
    whys = {pid: one.why for pid, one in found.items() if isinstance(one, Unread)}
    assert whys == {8: "vanished", 9: "too_big", 10: "malformed"}


def test_one_that_hangs_spoils_no_other() -> None:
    host = silent_for(8, lambda _: {"nodes": [UVM], "left_out": 0}, "pids")
    found = device_nodes.ask(host, (7, 8, 9))
    assert isinstance(found[8], Unread)
    assert (found[8].path, found[8].why) == ("/proc/8/root/dev", "no_answer")
    assert found[7] == found[9] == {NODE.path: NODE}


def test_machines_that_never_answer_cost_a_bounded_time() -> None:
    host = always(Unread("device_nodes", "no_answer"))
    found = device_nodes.ask(host, tuple(range(1, 201)))
    assert len(found) == 200
    assert len(host.asked) <= 200 // device_nodes.TOGETHER_MOST + 1 + device_nodes.SILENCES_MOST
    assert {one.why for one in found.values() if isinstance(one, Unread)} == {
        "no_answer", "not_reached",
    }  # fmt: skip


@pytest.mark.parametrize(
    "row",
    [[], UVM[:6], ["dev", *UVM[1:]], [7, *UVM[1:]], ["/" + "x" * 5000, *UVM[1:]],
     ["/dev/x", "p", *UVM[2:]], ["/dev/x", "c", -1, *UVM[3:]], ["/dev/x", "c", 1 << 40, *UVM[3:]]],
)  # fmt: skip
def test_rows_that_are_no_node(row: list[Any]) -> None:
    found = device_nodes.read(always({"host": HOST | {"nodes": [UVM, row]}}))
    assert isinstance(found, Unread)
    assert found.why == "malformed"


# --- access -----------------------------------------------------------------------------


def test_access_of_all_in_one_question() -> None:
    host = always({"targets": {
        "7": {"tried": [ROW, ["/dev/not-asked", 0, "c", 1, 3, 438, None]], "problem": None},
        "8": {"tried": [], "problem": ["refused", "setns"]},
    }})  # fmt: skip
    targets = [TARGET, AccessTarget(8, 1, ("/dev/x",)), AccessTarget(9, 1, ("/dev/x",))]
    found = device_access.ask(host, targets, opens=True)
    assert host.asked == [{
        "targets": [[7, 100, ["/dev/nvidia-uvm"]], [8, 1, ["/dev/x"]], [9, 1, ["/dev/x"]]],
        "opens": True,
    }]  # fmt: skip
    assert found[7] == Access({ROW[0]: Tried("/dev/nvidia-uvm", 1, "c", 234, 0, 438, None)}, None)
    assert found[8] == Access({}, Unread("/proc/8/root", "refused", "setns"))
    assert found[9].problem is not None
    assert (found[9].problem.why, found[9].tried) == ("malformed", {})


def test_what_was_tried_before_a_problem_stays() -> None:
    answer = {"targets": {"7": {"tried": [ROW], "problem": ["no_answer", "open hangs"]}}}
    found = device_access.ask(always(answer), [TARGET])[7]
    assert list(found.tried) == [ROW[0]]
    assert found.problem == Unread("/proc/7/root", "no_answer", "open hangs")


def test_a_node_that_is_not_there_has_no_numbers() -> None:
    answer = {"targets": {"7": {"tried": [[ROW[0], 2, None, None, None, None, None]]}}}
    found = device_access.ask(always(answer), [TARGET])[7]
    assert found.tried[ROW[0]] == Tried(ROW[0], 2, None, None, None, None, None)


def test_a_target_that_hangs_spoils_no_other() -> None:
    host = silent_for(8, lambda pid: {"tried": [ROW], "problem": None}, "targets")
    targets = [AccessTarget(pid, 1, (ROW[0],)) for pid in (7, 8, 9)]
    found = device_access.ask(host, targets)
    assert [found[pid].problem and found[pid].problem.why for pid in (7, 8, 9)] == [
        None, "no_answer", None,
    ]  # fmt: skip
    never = always(Unread("device_access", "no_answer"))
    assert len(device_access.ask(never, [AccessTarget(pid, 1, ()) for pid in range(1, 301)])) == 300
    assert len(never.asked) <= 2 + device_access.SILENCES_MOST


@pytest.mark.parametrize(
    "row",
    [ROW[:6], [7, *ROW[1:]], [ROW[0], -1, *ROW[2:]], [ROW[0], 9999, *ROW[2:]],
     [ROW[0], 0, "x", *ROW[3:]], [ROW[0], 0, "c", None, 0, 438, None],
     [ROW[0], 0, "c", 1, 0, 438, "x"]],
)  # fmt: skip
def test_rows_that_nobody_tried(row: list[Any]) -> None:
    found = device_access.ask(always({"targets": {"7": {"tried": [row]}}}), [TARGET])[7]
    assert found.problem is not None
    assert (found.problem.why, found.tried) == ("malformed", {})


# --- anything -----------------------------------------------------------------------------

JSONS: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from([UVM, ROW, ["refused", "x"], ["lies", "x"]]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["host", "pids", "targets", "7", "nodes", "links", "left_out", "tried", "problem"]
        ),
        inner,
        max_size=4,
    ),
)  # fmt: skip


@given(JSONS)
def test_any_answer_at_any_place(answer: Any) -> None:
    for whole in (answer, {"host": answer}, {"pids": {"7": answer}}, {"targets": {"7": answer}}):
        nodes = device_nodes.read(always(whole))
        assert isinstance(nodes, DeviceNodes) or nodes.why == "malformed"
        assert set(device_nodes.ask(always(whole), (7, 8))) == {7, 8}
        access = device_access.ask(always(whole), [TARGET])
        assert access[7].problem is not None or set(access[7].tried) <= set(TARGET.paths)
