"""Every parser of the readings, found by folder, against damaged and hostile bytes."""

import importlib
import inspect
import pkgutil
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.processor_speed import processor_stretch
from tests.readings.parser_samples import SAMPLES, Sample

import seawall.readings
from seawall.problems import ParseProblem

Parser = Callable[[bytes], Any]
MEGABYTE = 1 << 20
UNKNOWN_LINES = (
    b"Seawall_unknown: of a later kernel 7 kB",
    b"\xff\xfe \x1b[31m: \x00 what is this",
    b"",
)


def find_parsers() -> Iterator[tuple[str, Parser]]:
    """Whatever is called parse or parse_* and takes the bytes of a file alone."""
    for found in pkgutil.walk_packages(seawall.readings.__path__):
        module = importlib.import_module(f"seawall.readings.{found.name}")
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__ or not name.startswith("parse"):
                continue
            if list(inspect.signature(function).parameters) == ["data"]:
                yield f"{found.name}.{name}", function


PARSERS = dict(find_parsers())
PAIRS = [
    pytest.param(PARSERS[name], sample, id=f"{name}-{number}")
    for name, samples in sorted(SAMPLES.items())
    if name in PARSERS
    for number, sample in enumerate(samples)
]


def test_every_parser_has_a_sample_and_every_sample_a_parser() -> None:
    assert set(PARSERS) == set(SAMPLES)
    assert len(PARSERS) > 20


@pytest.mark.parametrize(("parse", "sample"), PAIRS)
def test_the_sample_is_taken(parse: Parser, sample: Sample) -> None:
    assert parse(sample.data) == parse(sample.data)
    assert sum(leaves(parse(sample.data)).values()) > 0


# --- damage ----------------------------------------------------------------------------


def flip(data: bytes, where: int, byte: int) -> bytes:
    where %= max(1, len(data))
    return data[:where] + bytes([byte]) + data[where + 1 :]


def cut(data: bytes, where: int, _byte: int) -> bytes:
    return data[: where % (len(data) + 1)]


def drop_line(data: bytes, where: int, _byte: int) -> bytes:
    lines = data.split(b"\n")
    del lines[where % len(lines)]
    return b"\n".join(lines)


def double_line(data: bytes, where: int, _byte: int) -> bytes:
    lines = data.split(b"\n")
    lines.insert(where % len(lines), lines[where % len(lines)])
    return b"\n".join(lines)


def move_line(data: bytes, where: int, byte: int) -> bytes:
    lines = data.split(b"\n")
    lines.insert(byte % len(lines), lines.pop(where % len(lines)))
    return b"\n".join(lines)


def huge_number(data: bytes, where: int, byte: int) -> bytes:
    words = data.split(b" ")
    words[where % len(words)] = b"-"[: byte % 2] + b"9" * (byte + 1)
    return b" ".join(words)


def garbage(data: bytes, where: int, byte: int) -> bytes:
    where %= len(data) + 1
    return data[:where] + bytes([byte, 0xFF, 0x00, 0xC3]) * 5 + data[where:]


DAMAGES = (flip, cut, drop_line, double_line, move_line, huge_number, garbage)
damage = st.tuples(st.sampled_from(DAMAGES), st.integers(0, 1 << 16), st.integers(0, 255))


def outcome(parse: Parser, data: bytes) -> Any:
    """The value, or None for the one error that may come out."""
    try:
        return parse(data)
    except ParseProblem as error:
        problem = error
    assert problem.line >= 0
    assert len(str(problem)) < 1000, "a message does not carry the file along"
    return None


@pytest.mark.parametrize(("parse", "sample"), PAIRS)
def test_only_its_own_error_comes_out(parse: Parser, sample: Sample) -> None:
    @given(st.lists(damage, min_size=1, max_size=4))
    def check(damages: list[tuple[Callable[[bytes, int, int], bytes], int, int]]) -> None:
        data = sample.data
        for kind, where, byte in damages:
            data = kind(data, where, byte)
        outcome(parse, data)

    check()


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_bytes_of_any_kind(name: str) -> None:
    parse = PARSERS[name]

    @settings(max_examples=20)
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        outcome(parse, data)

    check()
    for data in (b"", b"\n", b"\0", b"\xff", b":", b"=", b" ", b"null", b"0", b"()"):
        outcome(parse, data)


# --- what is whole stays whole ---------------------------------------------------------


@pytest.mark.parametrize(
    ("parse", "sample"), [pair for pair in PAIRS if pair.values[1].skips_unknown_lines]
)
def test_an_unknown_line_changes_nothing(parse: Parser, sample: Sample) -> None:
    lines = sample.data.split(b"\n")
    expected = parse(sample.data)
    for unknown in UNKNOWN_LINES:
        for where in {sample.heading, len(lines) // 2, len(lines) // 3, len(lines) - 1}:
            more = [*lines[:where], unknown, *lines[where:]]
            assert parse(b"\n".join(more)) == expected, (unknown, where)


def leaves(value: Any, name: str = "") -> Counter[tuple[str, Any]]:
    """Every single value of a reading with the name of its field, places left out."""
    if is_dataclass(value):
        parts = [leaves(getattr(value, f.name), f.name) for f in fields(value)]
    elif isinstance(value, Mapping):
        parts = [leaves(item, str(key)) for key, item in value.items()]
    elif isinstance(value, list | tuple | frozenset):
        parts = [leaves(item, name) for item in value]
    else:
        return Counter([(name, value)])
    return sum(parts, Counter())


@pytest.mark.parametrize(
    ("parse", "sample"), [pair for pair in PAIRS if pair.values[1].each_line_by_itself]
)
def test_a_damaged_line_leaves_the_others_alone(parse: Parser, sample: Sample) -> None:
    whole = leaves(parse(sample.data))
    lines = sample.data.split(b"\n")

    @given(
        st.integers(0, len(lines) - 1),
        st.sampled_from((flip, cut, huge_number, garbage)),
        st.integers(0, 1 << 16),
        st.integers(0, 255).filter(lambda byte: byte != ord("\n")),
    )
    def check(number: int, kind: Callable[[bytes, int, int], bytes], where: int, byte: int) -> None:
        assume(sample.but not in lines[number])
        damaged = list(lines)
        damaged[number] = kind(lines[number], where, byte)
        value = outcome(parse, b"\n".join(damaged))
        if value is None:
            return
        lost = sum((whole - leaves(value)).values())
        assert lost <= sample.leaves_of_a_line, (lines[number], damaged[number])

    check()


# --- time and memory -------------------------------------------------------------------


def large(sample: Sample) -> Iterator[tuple[str, bytes]]:
    first, _, rest = sample.data.partition(b"\n")
    yield "one long line", sample.data + b"a" * MEGABYTE
    yield "a long first line", first + b" 1" * (MEGABYTE // 2) + b"\n" + rest
    yield "a long number", sample.data.replace(b"1", b"1" * MEGABYTE, 1)
    yield "many words", b"1 " * (MEGABYTE // 2)
    yield "many lines", b"\n" * MEGABYTE
    yield "open brackets", b"[" * MEGABYTE
    yield "the file again and again", sample.data * (MEGABYTE // len(sample.data) // 4)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_a_megabyte_takes_less_than_a_second(name: str) -> None:
    parse, sample = PARSERS[name], SAMPLES[name][-1]
    for kind, data in large(sample):
        start = time.process_time()
        outcome(parse, data)
        used = time.process_time() - start
        assert used < 1.0 or used < processor_stretch(), kind


@pytest.mark.parametrize(
    "most_bytes", [MEGABYTE // 32, pytest.param(MEGABYTE // 4, marks=pytest.mark.campaign)]
)
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_memory_stays_in_proportion(name: str, most_bytes: int) -> None:
    parse, sample = PARSERS[name], SAMPLES[name][-1]
    for kind, data in large(sample):
        data = data[:most_bytes]
        tracemalloc.start()
        try:
            outcome(parse, data)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 64 * len(data), kind
