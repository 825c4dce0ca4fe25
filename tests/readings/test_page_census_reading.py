"""The answer of the probe, which a bundle may hold and a stranger may have written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.readings.page_census import CHARGED, PageCensus, take

SAMPLE: dict[str, Any] = {
    "page_size": 65536, "frames": 100, "frames_read": 30, "classes": 10, "classes_read": 3,
    "chunk_frames": 5, "seconds": 0.5, "ranges_from": "/proc/iomem", "has_cgroups": True,
    "counts": [[1024, 0, 20], [CHARGED, 77, 10]], "words": [1024, CHARGED],
    "samples": [[5, 5], [5, 5], [10, 0]], "squares": [[77, 50]],
}  # fmt: skip
WHOLE = SAMPLE | {
    "frames": 30, "classes_read": 10, "samples": [], "squares": [], "words": [],
}  # fmt: skip


def read(answer: Any) -> PageCensus | Unread:
    text = f"=== ?page_census\n{json.dumps(answer)}\n"
    return take(parse_case(text.encode()).rounds[0])


def test_a_sample() -> None:
    census = read(SAMPLE)
    assert isinstance(census, PageCensus)
    assert not census.is_whole
    assert census.page_size == 65536
    assert census.counts == ((1024, 0, 20), (CHARGED, 77, 10))
    assert census.samples == ((5, 5), (5, 5), (10, 0))
    assert census.squares == {77: 50}


def test_all_frames() -> None:
    census = read(WHOLE)
    assert isinstance(census, PageCensus)
    assert census.is_whole


@pytest.mark.parametrize(
    "change",
    [
        {"page_size": 4095}, {"page_size": 1 << 40}, {"frames": 29}, {"frames_read": 31},
        {"frames_read": 0}, {"classes_read": 11}, {"classes_read": 0}, {"seconds": -1},
        {"seconds": "fast"}, {"seconds": float("nan")}, {"seconds": float("inf")},
        {"counts": [[1024, 0, 29]]}, {"counts": [[1024, 0]]}, {"counts": None},
        {"counts": [[1024, 0, 40], [0, 0, -10]]}, {"counts": [[True, 0, 30]]},
        {"samples": [[5, 5]] * 4}, {"samples": [[5, 5], [5, 5], [5, 0]]}, {"samples": []},
        {"samples": [[5], [5], [10]]}, {"words": [1024]}, {"words": "1024"},
        {"squares": [[77]]}, {"squares": {"77": 50}}, {"ranges_from": 7},
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_fit_is_malformed(change: dict[str, Any]) -> None:
    answer = read(SAMPLE | change)
    assert isinstance(answer, Unread)
    assert answer.why == "malformed"


@pytest.mark.parametrize("answer", [None, 3, "text", [], {}, [[1]], {"counts": []}])
def test_other_shapes_are_malformed(answer: Any) -> None:
    found = read(answer)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


def test_why_there_is_none_is_told() -> None:
    found = read({"why": "failed", "path": "/proc/kpageflags", "detail": "no ranges"})
    assert found == Unread("/proc/kpageflags", "failed", "no ranges")
    found = take(parse_case(b"=== /proc/uptime\n1 1\n").rounds[0])
    assert isinstance(found, Unread)
    assert (found.path, found.why) == ("/proc/kpageflags", "absent")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 1 << 70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.sampled_from(sorted(SAMPLE)), JSON_VALUES)
def test_no_answer_is_a_surprise(name: str, value: Any) -> None:
    """Whatever stands in one field: a census that fits, or malformed; nothing is raised."""
    for start in (SAMPLE, WHOLE):
        found = _ask(start | {name: value})
        if isinstance(found, PageCensus):
            assert sum(count.frames for count in found.counts) == found.frames_read
        else:
            assert found.why in ("malformed", "failed")


def _ask(answer: Any) -> PageCensus | Unread:
    class Host:
        def ask(self, probe: str, argument: str = "") -> Any:
            assert (probe, argument) == ("page_census", "")
            return answer

    return take(Host())  # type: ignore[arg-type] - it asks for nothing else
