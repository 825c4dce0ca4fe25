"""The answer of the probe ``page_trace``: typed, and believed in no part that is not sound."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.host.host import JSON, Unread
from seawall.readings.page_trace import (
    DriverPages,
    GrossPages,
    HeldPages,
    PageTrace,
    TracedTask,
    parse_answer,
    trace,
)

TASK = {
    "tid": 4243, "tgid": 4242, "comm": "rings\n\x1b[1m", "start_ticks": 2404312,
    "is_kernel_thread": False, "cgroups": ["4:memory:/a/b", "0::/"], "cgroup_inode": 812,
    "known_by": "attach", "alive": True,
}  # fmt: skip
ANSWER: dict[str, Any] = {
    "seconds": 9.98, "page_size": 65536, "mechanism": "ring+hist", "events": 48211,
    "lost_events": 3, "sampled_one_in": 4, "notes": ["3 were lost"], "free_list_pages": 7,
    "buffer_bytes": 8388608, "stacks": [["packet_set_ring", "packet_setsockopt"], []],
    "tasks": [TASK, {**TASK, "start_ticks": None, "cgroup_inode": None, "known_by": None}],
    "held": [{"task": 1, "stack": 0, "pages": 64, "least_pages": 60, "most_pages": 80,
              "mapped_pages": 64}],
    "gross": [{"task": 0, "pages": 5000}],
    "kprobes": [{"driver": "nvidia", "task": 0, "pages": 10, "freed_pages": 4}],
}  # fmt: skip


class Answers:
    """A host that answers one probe."""

    def __init__(self, answer: JSON | Unread) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        self.asked.append((probe, argument))
        return self.answer


def test_an_answer_becomes_typed() -> None:
    host = Answers(ANSWER)
    found = trace(host, 9.5)  # type: ignore[arg-type]
    assert host.asked == [("page_trace", '{"seconds": 9.5}')]
    assert isinstance(found, PageTrace)
    assert (found.seconds, found.page_size, found.mechanism) == (9.98, 65536, "ring+hist")
    assert (found.events, found.lost_events, found.sampled_one_in) == (48211, 3, 4)
    assert (found.notes, found.free_list_pages, found.buffer_bytes) == (
        ("3 were lost",),
        7,
        8 << 20,
    )
    assert found.stacks == (("packet_set_ring", "packet_setsockopt"), ())
    assert found.tasks[0] == TracedTask(
        4243, 4242, "rings\n\x1b[1m", 2404312, False, ("4:memory:/a/b", "0::/"), 812, "attach", True
    )
    assert (found.tasks[1].start_ticks, found.tasks[1].known_by) == (None, None)
    assert found.held == (HeldPages(1, 0, 64, 60, 80, 64),)
    assert found.gross == (GrossPages(0, 5000),)
    assert found.kprobes == (DriverPages("nvidia", 0, 10, 4),)


def test_a_reason_stays_a_reason() -> None:
    why = {"problem": "this kernel has no event kmem:mm_page_alloc", "why": "absent", "path": "x"}
    found = parse_answer(why)
    assert found == Unread("page_trace", "absent", "this kernel has no event kmem:mm_page_alloc")
    strange = parse_answer({"problem": "x", "why": "because"})
    assert strange == Unread("page_trace", "failed", "x")
    not_captured = Unread("page_trace", "not_captured")
    assert parse_answer(not_captured) is not_captured


HUGE = 1 << 70


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["page_size"], 0), (["page_size"], 4097), (["sampled_one_in"], 0), (["events"], -1),
        (["events"], True), (["events"], 1.5), (["events"], HUGE), (["seconds"], float("nan")),
        (["seconds"], "9"), (["notes"], "words"), (["notes"], [1]), (["notes"], ["x"] * 65),
        (["notes"], ["x" * 5000]), (["tasks"], {}), (["stacks"], [["x"] * 33]),
        (["held", 0, "task"], 2), (["held", 0, "stack"], 2), (["held", 0, "pages"], 59),
        (["held", 0, "most_pages"], 63), (["held", 0, "mapped_pages"], 65),
        (["held", 0, "task"], -1), (["held", 0, "pages"], None), (["held"], [[]]),
        (["gross", 0, "task"], 9), (["gross", 0, "pages"], HUGE), (["gross"], None),
        (["kprobes", 0, "driver"], 5), (["kprobes", 0, "task"], 2),
        (["tasks", 0, "tid"], "1"), (["tasks", 0, "alive"], 1),
        (["tasks", 0, "known_by"], "rumour"),
        (["tasks", 0, "cgroups"], ["x"] * 65), (["tasks", 0, "cgroup_inode"], 1 << 64),
        (["tasks", 0, "start_ticks"], -5), (["mechanism"], None), (["buffer_bytes"], "many"),
    ],
)  # fmt: skip
def test_what_is_not_sound_is_not_believed(path: list[str | int], value: object) -> None:
    answer = copy.deepcopy(ANSWER)
    place: Any = answer
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    found = parse_answer(answer)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


def test_rows_without_end_are_refused() -> None:
    answer = {**ANSWER, "gross": [{"task": 0, "pages": 1}] * ((1 << 17) + 1)}
    found = parse_answer(answer)
    assert isinstance(found, Unread)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ANSWER)), values, st.booleans())
def test_any_answer_is_a_trace_or_unread(key: str, value: Any, is_whole: bool) -> None:
    answer = value if is_whole else {**ANSWER, key: value}
    assert isinstance(parse_answer(answer), PageTrace | Unread)


def test_the_answer_passes_through_json() -> None:
    assert isinstance(parse_answer(json.loads(json.dumps(ANSWER))), PageTrace)
