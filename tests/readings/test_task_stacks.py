"""/proc/PID/stack and the answers of the probe, own and foreign."""

from typing import Any

import pytest

from seawall.host.host import Unread
from seawall.readings.task_stacks import FRAMES_MOST, StackFrame, TaskStacks, parse, read

# As 4.14 prints it (addresses), 6.1 and a kernel with build ids.
OLD = b"""[<ffffffffb0a6b8a5>] wait_on_page_bit_killable+0x95/0xb0
[<ffffffffc05f1234>] nvidia_ioctl+0x1a4/0x9e0 [nvidia]
[<ffffffffffffffff>] 0xffffffffffffffff
"""
NEW = b"[<0>] folio_wait_bit_common+0x110/0x310\n[<0>] uvm_ioctl+0x8/0x20 [nvidia_uvm 00ff00]\n"
TASK = [7, 8, "a b", "D", 4194304, 5, 6, 7, 9, 0, "", "do_exit"]
ANSWER: dict[str, Any] = {
    "tasks": [TASK], "stacks": ["do_exit+0x1/0x2\n"], "threads": 3, "threads_left_out": 0,
    "processes_left_out": 1, "stacks_left_out": 0, "scan_seconds": 0.25, "is_hidden": False,
}  # fmt: skip


class Answering:
    def __init__(self, answer: object) -> None:
        self._answer = answer

    def ask(self, probe: str, argument: str = "") -> object:
        assert (probe, argument) == ("task_stacks", "")
        return self._answer


def asked(answer: object) -> TaskStacks | Unread:
    return read(Answering(answer))  # type: ignore[arg-type]


def test_stacks_of_old_and_new_kernels() -> None:
    assert parse(OLD) == (
        StackFrame("wait_on_page_bit_killable", None), StackFrame("nvidia_ioctl", "nvidia"),
    )  # fmt: skip
    assert parse(NEW) == (
        StackFrame("folio_wait_bit_common", None),
        StackFrame("uvm_ioctl", "nvidia_uvm"),
    )
    assert parse(b"") == ()
    assert len(parse(b"f+0x1/0x2\n" * 1000)) == FRAMES_MOST


def test_an_answer_is_taken_as_it_was_given() -> None:
    found = asked(ANSWER)
    assert isinstance(found, TaskStacks)
    (task,) = found.tasks
    assert (task.pid, task.tid, task.comm, task.state, task.turns) == (7, 8, "a b", "D", 9)
    assert task.stack == (StackFrame("do_exit", None),)
    assert (found.threads, found.processes_left_out, found.is_hidden) == (3, 1, False)


def test_a_refusal_stays_a_refusal() -> None:
    row = [*TASK[:9], None, "refused", ""]
    found = asked({**ANSWER, "tasks": [row], "stacks": []})
    assert isinstance(found, TaskStacks)
    assert (found.tasks[0].stack, found.tasks[0].why) == (None, "refused")
    refusal = Unread("task_stacks", "no_answer", "a process did not let go")
    assert asked(refusal) is refusal


def changed(**values: object) -> dict[str, object]:
    return {**ANSWER, **values}


@pytest.mark.parametrize(
    "answer",
    [
        None, 3, [], {}, changed(threads=-1), changed(threads=True), changed(threads=1 << 70),
        changed(scan_seconds="1"), changed(is_hidden=0), changed(tasks={}), changed(stacks=[1]),
        changed(tasks=[TASK[:-1]]), changed(tasks=[[*TASK, 1]]), changed(tasks=[3]),
        changed(tasks=[[*TASK[:9], 1, "", ""]]), changed(tasks=[[*TASK[:9], -1, "", ""]]),
        changed(tasks=[[*TASK[:9], True, "", ""]]), changed(tasks=[[7, 8, "x", "S", *TASK[4:]]]),
        changed(tasks=[[7, 8, "x" * 300, *TASK[3:]]]), changed(tasks=[[7, 8, ["x"], *TASK[3:]]]),
        changed(tasks=[[7, "8", *TASK[2:]]]), changed(tasks=[[7, 8, "x", ["D"], *TASK[4:]]]),
    ],
)  # fmt: skip
def test_foreign_answers_are_malformed(answer: object) -> None:
    found = asked(answer)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


def test_a_reason_that_nobody_knows_is_failed() -> None:
    found = asked(changed(tasks=[[*TASK[:9], None, "because", ""]]))
    assert isinstance(found, TaskStacks)
    assert found.tasks[0].why == "failed"
