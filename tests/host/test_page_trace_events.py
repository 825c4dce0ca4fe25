"""Formats, gfp flags and decoding of what two kernels recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.host.page_trace_files import KERNELS, event, freed, page, pages, recorded

from seawall.host.page_trace import decode
from seawall.host.page_trace.decode import (
    FreedPages,
    Happening,
    TakenPages,
    TaskEvents,
    addresses,
)
from seawall.host.page_trace.event_format import fields_of, flag_value, parse
from seawall.problems import ParseProblem

COMPOUND = 1 << 18


@pytest.mark.parametrize("kernel", KERNELS)
def test_flags_are_worth_what_the_kernel_says(kernel: str) -> None:
    text = event(kernel, "mm_page_alloc").print_format
    assert flag_value(text, "__GFP_MOVABLE") == 0x8
    assert flag_value(text, "__GFP_RECLAIMABLE") == 0x10
    assert flag_value(text, "__GFP_COMP") == COMPOUND
    assert flag_value(text, "__GFP_ACCOUNT") == 0x400000
    assert flag_value(text, "GFP_KERNEL") is None  # several: not one flag
    assert flag_value(text, "__GFP_NOBODY") is None


def test_numbers_and_fields_are_those_of_the_kernel() -> None:
    old, new = event("6.1-debian", "mm_page_free"), event("6.18", "mm_page_free")
    assert (old.number, new.number) == (0x225, 0x28F)
    pfn = new.field("pfn")
    assert (pfn.offset, pfn.size, pfn.is_signed) == (8, 8, False)
    head = fields_of(recorded("6.18", "header_page").decode())
    assert (head["commit"].offset, head["data"].offset) == (8, 16)
    with pytest.raises(ParseProblem):
        new.field("nothing")
    with pytest.raises(ParseProblem):
        parse(b"name: x\n")


def test_a_located_text_is_told_from_a_plain_one() -> None:
    moved = event("6.18", "cgroup_attach_task")
    assert moved.field("dst_path").is_located
    assert not event("6.18", "task_newtask").field("comm").is_located


def taken(kernel: str) -> tuple[TakenPages, list[Happening]]:
    into: list[Happening] = []
    decoder = TakenPages(event(kernel, "mm_page_alloc"), event(kernel, "kernel_stack"), COMPOUND)
    for raw in pages(kernel, "pages"):
        decoder.decode(0, raw, into)
    return decoder, into


def test_a_stack_belongs_to_the_event_before_it() -> None:
    decoder, into = taken("6.1-debian")
    # By od: tid 0x7f, frames 0x6b35 and so on; the first stack's event is in the page before.
    assert into[0] == (7673046350, decode.TAKEN, 0x7F, 0x6B35, 0, False, 1)
    assert [happening[3] for happening in into[:4]] == [0x6B35, 0x6B36, 0x6B37, 0x6B38]
    assert len(into) == 29
    (stack,) = [callers for callers, number in decoder.stacks.items() if number == 1]
    assert addresses(stack)[0] == 0xFFFFFFFFA78B73CF
    assert len(addresses(stack)) == 9


def test_an_event_waits_for_its_stack_over_the_end_of_a_page() -> None:
    decoder, into = taken("6.1-debian")
    assert decoder.oldest_open() == 7673351680
    late: list[Happening] = []
    decoder.give_up(7673351681, late)
    assert late == [(7673351680, decode.TAKEN, 0x7F, 0x6B52, 0, False, decode.NO_STACK)]
    assert decoder.oldest_open() is None
    assert len(into) == 29


def test_frees_are_read_by_both_ways() -> None:
    frees = FreedPages(event("6.18", "mm_page_free"))
    into: list[Happening] = []
    for raw in pages("6.18", "frees"):
        frees.decode(raw, into)
    assert into[0] == (0x175BAF8AAE16, decode.FREED, 0x176649, 0)
    assert len(into) == 2 * 145
    number = event("6.18", "mm_page_free").number
    raw = page(9, freed(1, 5, 3, number) + freed(1, 1 << 40, 0, number))
    into.clear()
    frees.decode(raw, into)  # a frame above 32 bits: not the short way
    assert into == [(10, decode.FREED, 5, 3), (11, decode.FREED, 1 << 40, 0)]


def test_forks_and_moves_are_told() -> None:
    into: list[Happening] = []
    tasks = TaskEvents(event("6.18", "task_newtask"), event("6.18", "cgroup_attach_task"))
    for raw in pages("6.18", "tasks"):
        tasks.decode(raw, into)
    assert (25682546513778, decode.FORKED, 27447, 27448, "sh", 0x4100) in into
    assert (25682660105021, decode.MOVED, 27447, 4, "/seawall-rec", 4540867) in into
    assert len(into) == 6


@pytest.mark.parametrize("kernel", KERNELS)
@given(data=st.binary(max_size=400), kinds=st.lists(st.sampled_from([0, 1, 2]), max_size=8))
def test_only_a_parse_problem_escapes(kernel: str, data: bytes, kinds: list[int]) -> None:
    names = ("mm_page_alloc", "mm_page_free", "cgroup_attach_task")
    decoder, _ = taken(kernel)
    frees = FreedPages(event(kernel, "mm_page_free"))
    tasks = TaskEvents(event(kernel, "task_newtask"), event(kernel, "cgroup_attach_task"))
    body = b""
    for at, kind in enumerate(kinds):
        part = data[at * 40 : at * 40 + 40].ljust(44, b"\xff")
        number = event(kernel, names[kind]).number
        body += (11).to_bytes(4, "little") + number.to_bytes(2, "little") + part[2:]
    for raw in (page(1, body[: len(body)]), page(1, data)):
        for decode_one in (
            lambda raw, into: decoder.decode(0, raw, into), frees.decode, tasks.decode,
        ):  # fmt: skip
            try:
                decode_one(raw, [])
            except ParseProblem:
                continue


@given(st.text(max_size=300))
def test_a_format_of_nonsense_is_a_parse_problem(text: str) -> None:
    flag_value(text, "__GFP_ACCOUNT")
    try:
        parse(text.encode("utf-8", "surrogatepass"))
    except ParseProblem:
        return
