"""Who gets the budget."""

from hypothesis import given
from hypothesis import strategies as st

from seawall.pinner import pin_plan as planning
from seawall.pinner.elf import text_of
from seawall.pinner.intervals import Range, common, total, without
from seawall.pinner.mappings import own_identity, parse
from seawall.pinner.pin_plan import OVER_BUDGET, TOO_MANY, File, budget, plan

KIB, MIB = 1 << 10, 1 << 20


def file(inode: int, code_kib: int, data_kib: int = 0, **more: object) -> File:
    """All of it in memory."""
    code, data = (0, code_kib * KIB), (code_kib * KIB, (code_kib + data_kib) * KIB)
    whole = (0, (code_kib + data_kib) * KIB)
    return File(
        "08:01", inode, f"/bin/{inode}", code=[code], data=[data], resident=[whole], size=whole[1],
        **more,  # type: ignore[arg-type]
    )  # fmt: skip


def given_kib(found: planning.PinPlan, inode: int) -> int:
    return total(found.ranges.get(("08:01", inode), [])) // KIB


def test_programs_by_importance_then_small_libraries_then_data() -> None:
    big = file(1, 400, 100, is_program=True, rank=1)
    late = file(2, 40, 8, is_program=True, rank=9)
    small, large = file(3, 64, 64), file(4, 800, 8)
    found = plan([large, small, late, big], (400 + 40 + 64 + 100) * KIB)
    assert [given_kib(found, inode) for inode in (1, 2, 3, 4)] == [400, 40, 64, 100]
    assert (OVER_BUDGET, 700 * KIB) in found.refused[large.key]
    assert found.bytes == 604 * KIB
    whole = plan([large, small, late, big], 1 << 40)
    assert whole.bytes == (500 + 48 + 128 + 808) * KIB
    assert not whole.refused


def test_only_what_is_in_memory_and_of_a_use() -> None:
    one = file(1, 100, 100)
    one.resident = [(8 * KIB, 12 * KIB), (96 * KIB, 104 * KIB), (300 * KIB, 400 * KIB)]
    found = plan([one], MIB)
    assert found.ranges[one.key] == [(8 * KIB, 12 * KIB), (96 * KIB, 104 * KIB)]


def test_too_many_pieces_are_refused() -> None:
    one = file(1, 4 * 40_000)
    one.resident = [(at * 8 * KIB, at * 8 * KIB + 4 * KIB) for at in range(20_000)]
    found = plan([one], 1 << 30)
    assert len(found.ranges[one.key]) == planning.PIECES_MOST
    assert found.refused[one.key] == [(TOO_MANY, (20_000 - planning.PIECES_MOST) * 4 * KIB)]


def test_never_over_a_twentieth_of_the_memory() -> None:
    assert budget(128 * MIB, 1536 * MIB) == 1536 * MIB // 20 // 4096 * 4096
    assert budget(128 * MIB, 64 << 30) == 128 * MIB


RANGES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=8)


@given(st.lists(st.tuples(RANGES, RANGES, RANGES, st.booleans()), max_size=5), st.integers(0, 300))
def test_the_budget_is_never_exceeded(
    rows: list[tuple[list[Range], list[Range], list[Range], bool]], pages: int
) -> None:  # fmt: skip
    def bytes_of(ranges: list[Range]) -> list[Range]:
        return planning.union((a * 4096, b * 4096) for a, b in ranges)

    files = [
        File("08:01", number, "/f", code=bytes_of(code), data=bytes_of(data), size=100 * 4096,
             resident=bytes_of(resident), is_program=program)
        for number, (code, data, resident, program) in enumerate(rows)
    ]  # fmt: skip
    found = plan(files, pages * 4096)
    assert found.bytes == sum(map(total, found.ranges.values())) <= pages * 4096
    for one in files:
        got = found.ranges.get(one.key, [])
        text = planning.union([*one.code, *one.data])
        assert not without(got, common(text, one.resident))
        left = sum(count for _, count in found.refused.get(one.key, []))
        assert total(got) + left == total(common(text, one.resident))


MAPS = b"""\
00400000-00401000 r--p 00000000 fd:00 17 /bin/a b
00401000-0040b000 r-xp 00001000 fd:00 17 /bin/a b
0040b000-0040c000 rw-p 0000b000 fd:00 17 /bin/a b
7f0000000000-7f0000001000 r--p 00000000 fd:00 18 /usr/lib/locale/C.utf8
7f0000002000-7f0000003000 r-xp 00000000 00:1f 9 /lib/x.so (deleted)
7f0000004000-7f0000005000 rwxp 00000000 00:01 5 /memfd:jit (deleted)
7ffc00000000-7ffc00002000 r-xp 00000000 00:00 0 [vdso]
nonsense
"""


def test_text_is_what_is_mapped_executable_and_its_read_only_data() -> None:
    found = [(s.name, s.start, s.end, s.is_code) for s in parse(MAPS)]
    assert found == [
        ("/bin/a b", 0, 4096, False), ("/bin/a b", 4096, 0xB000, True),
        ("/lib/x.so (deleted)", 0, 4096, True),
    ]  # fmt: skip
    assert parse(MAPS)[0].span == "400000-401000"
    assert own_identity(MAPS, 0x401000) == ("fd:00", 17)
    assert own_identity(MAPS, 0x402000) is None


@given(st.binary(max_size=400))
def test_no_bytes_break_the_parsers(data: bytes) -> None:
    parse(data)
    text_of(data)
    text_of(b"\x7fELF\x02\x01" + data)
