"""Sub-buffers of the ring buffer: recorded ones, ones made by hand, and nonsense."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.host.page_trace_files import freed, page, pages, record

from seawall.host.page_trace.ring_pages import PAGE_MOST, uniform, walk
from seawall.problems import ParseProblem


def starts(raw: bytes) -> list[tuple[int, int]]:
    return [(time, start) for time, start, _ in walk(raw).records]


def test_a_recorded_page_of_6_18_is_read_to_its_end() -> None:
    (raw,) = pages("6.18", "pages")
    walked = walk(raw)
    # By od: the page's time, and its first two headers 0x1a (26 words) and 0x0417bfca.
    first = 0x175BFAFCA84D
    assert walked.records[0] == (first, 20, 20 + 26 * 4)
    assert walked.records[1][:2] == (first + (0x0417BFCA >> 5), 128)
    assert walked.records[1][2] - 128 == 10 * 4
    assert len(walked.records) == 53
    assert walked.records[-1][2] == 16 + 0xFDC
    assert not walked.is_missing


def test_the_short_way_reads_what_the_long_way_reads() -> None:
    for raw in pages("6.18", "frees"):
        short = uniform(raw, 0x28F, 6)
        assert short
        walked = walk(raw).records
        assert short.times == [time for time, _, _ in walked]
        frames = [struct.unpack_from("<Q", raw, start + 8)[0] for _, start, _ in walked]
        assert list(short.words[3 :: short.stride]) == frames
        assert len(frames) == 145


def test_a_recorded_page_with_an_extension_of_time_goes_the_long_way() -> None:
    raw = pages("6.1-debian", "frees")[0]  # 0xfe4 bytes: 145 records and 8
    assert uniform(raw, 0x225, 6) is None
    assert len(walk(raw).records) == 145


def test_times_add_up_over_extensions_padding_and_discarded_records() -> None:
    body = record(5, b"\1\0\0\0")
    body += struct.pack("<II", 3 << 5 | 30, 2)  # two times 2**27 and 3 more
    body += record(1, b"\2\0\0\0")
    body += struct.pack("<IIQ", 7 << 5 | 29, 12, 0)  # discarded: 12 bytes with its length's word
    body += record(1, b"\3\0\0\0")
    body += struct.pack("<II", 9 << 5 | 31, 1)  # absolute: 2**27 + 9
    body += record(0, b"\4\0\0\0")
    body += struct.pack("<I", 29) + b"\xff" * 8  # the rest was never used
    raw = page(1000, body)
    extended = 1005 + (2 << 27) + 3 + 1
    assert starts(raw) == [
        (1005, 20), (extended, 36), (extended + 7 + 1, 60), ((1 << 27) + 9, 76)
    ]  # fmt: skip


def test_a_long_record_has_its_length_in_a_word_of_its_own() -> None:
    payload = b"x" * 150
    body = struct.pack("<II", 4 << 5, 4 + len(payload)) + payload + b"\0\0" + record(1, b"abcd")
    assert walk(page(10, body)).records == [(14, 24, 174), (15, 180, 184)]


def test_lost_events_are_told_with_and_without_their_number() -> None:
    body = record(0, b"abcd")
    told = walk(page(0, body, flags=1 << 31 | 1 << 30, tail=struct.pack("<Q", 4711)))
    assert (told.is_missing, told.missed, len(told.records)) == (True, 4711, 1)
    untold = walk(page(0, body, flags=1 << 31))
    assert (untold.is_missing, untold.missed) == (True, 0)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 15,
        struct.pack("<QQ", 0, 8),
        page(0, struct.pack("<I", 28)),
        page(0, struct.pack("<I", 30)),
        page(0, struct.pack("<II", 0, 3)),
        page(0, struct.pack("<II", 0, 5000)),
        page(0, b"\1\0"),
        bytes(PAGE_MOST + 1),
    ],
)
def test_a_page_whose_lengths_lead_out_of_it_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseProblem):
        walk(raw)


def test_a_page_with_anything_else_in_it_goes_the_long_way() -> None:
    plain = freed(1, 5) + freed(1, 6)
    assert uniform(page(9, plain), 655, 6)
    assert uniform(page(9, plain), 656, 6) is None
    assert uniform(page(9, plain, flags=1 << 31), 655, 6) is None
    assert uniform(page(9, plain + struct.pack("<II", 30, 1)), 655, 6) is None
    assert uniform(page(9, b""), 655, 6) is None
    seven_extensions = struct.pack("<II", 30, 1) * 7
    assert uniform(page(9, plain + seven_extensions), 655, 6) is None


@given(st.binary(max_size=600), st.integers(0, 1 << 32), st.booleans())
def test_only_a_parse_problem_escapes(data: bytes, commit: int, is_whole: bool) -> None:
    used = len(data) if is_whole else commit
    raw = struct.pack("<QQ", 1, used) + data
    try:
        walked = walk(raw)
    except ParseProblem:
        return
    assert len(walked.records) <= len(data) // 4
    assert all(16 <= start <= end <= len(raw) for _, start, end in walked.records)
    uniform(raw, 655, 6)
