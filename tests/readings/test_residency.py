"""Answers of the residency probes as typed values; hostile ones from bundles too."""

import json
from typing import Any

import pytest
from tests.case_host import parse_case

from seawall.host.host import Unread
from seawall.readings.residency import FilePages, measure, measure_each, walk

ROW = {
    "kind": "file", "device": 65024, "inode": 7, "size": 8193, "deleted": False,
    "method": "cachestat", "cached": 3, "dirty": 1, "writeback": 0, "evicted": 2,
    "recently_evicted": 1,
}  # fmt: skip


def asked(answer: Any) -> FilePages | Unread:
    case = f"=== ?residency /a\n{json.dumps(answer)}\n"
    return measure(parse_case(case.encode()).rounds[0], "/a")


def test_a_row() -> None:
    found = asked(ROW)
    assert isinstance(found, FilePages)
    assert (found.device, found.inode, found.size_bytes) == (65024, 7, 8193)
    assert (found.cached, found.dirty, found.evicted, found.recently_evicted) == (3, 1, 2, 1)
    assert found.overlay is None


def test_what_is_not_told_is_none_and_not_zero() -> None:
    by_mincore = {key: ROW[key] for key in ("kind", "device", "inode", "size", "cached")}
    found = asked({**by_mincore, "method": "mincore"})
    assert isinstance(found, FilePages)
    assert found.cached == 3
    assert found.dirty is None
    assert found.recently_evicted is None


@pytest.mark.parametrize(
    "answer",
    [
        [], "x", 7, None, {}, {"kind": "row"}, {**ROW, "inode": "7"}, {**ROW, "device": -1},
        {**ROW, "size": True}, {**ROW, "kind": ["file"]}, {"kind": "file"},
    ],
)  # fmt: skip
def test_malformed(answer: Any) -> None:
    found = asked(answer)
    assert isinstance(found, Unread)
    assert found.why == "malformed"


def test_absurd_counts_are_not_known() -> None:
    found = asked({**ROW, "cached": -1, "dirty": 1e9, "evicted": 1 << 70})
    assert isinstance(found, FilePages)
    assert found.cached is found.dirty is found.evicted is None


def test_reasons_pass_through() -> None:
    found = asked({"why": "no_answer", "detail": "the disk"})
    assert found == Unread("/a", "no_answer", "the disk")
    assert asked({"why": "of its own", "detail": "x"}) == Unread("/a", "malformed", "x")


def test_each_answers_in_order_or_not_at_all() -> None:
    items = [{"open": ["/a"], "name": "a"}, {"open": ["/b"], "name": "b"}]

    def each(answer: Any) -> list[FilePages | Unread]:
        case = f"=== ?residency_each {json.dumps(items)}\n{json.dumps(answer)}\n"
        return measure_each(parse_case(case.encode()).rounds[0], items)

    first, second = each([ROW, {"why": "absent", "detail": ""}])
    assert isinstance(first, FilePages)
    assert second == Unread("b", "absent", "")
    assert all(isinstance(one, Unread) for one in each([ROW]))
    assert len(each({})) == 2


def test_walk_without_its_sums_is_malformed() -> None:
    request = {"folder": "/a"}
    case = f"=== ?residency_walk {json.dumps(request)}\n" + json.dumps({"files": 7}) + "\n"
    found = walk(parse_case(case.encode()).rounds[0], request)
    assert isinstance(found, Unread)
    assert found.why == "malformed"
