"""Device programs decided by running them."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.accounts.device_programs import (
    ADD,
    ALU32,
    ALU64,
    AND,
    EXIT,
    HEAD,
    JA,
    JEQ,
    JMP,
    JMP32,
    JNE,
    MOV,
    REFUSE,
    REGISTER,
    XOR,
    Rule,
    crun,
    end,
    insn,
    load,
    runc,
    systemd,
    systemd_strict,
)  # fmt: skip

from seawall.accounts.devices.kernel_rules.bpf import run
from seawall.accounts.devices.kernel_rules.cgroup_rules import allowed
from seawall.accounts.devices.kernel_rules.device_rules import RuledDevice
from seawall.host.host import Unread
from seawall.readings.device_cgroups import DeviceCgroups

BLOCK, CHAR = 1, 2
MKNOD, READ, WRITE = 1, 2, 4
RULES = (
    Rule(CHAR, MKNOD), Rule(BLOCK, MKNOD), Rule(CHAR, 7, 1, 3), Rule(CHAR, READ | WRITE, 136),
    Rule(CHAR, READ | WRITE, 195, 255), Rule(CHAR, READ, 195, 1), Rule(BLOCK, 7, 8),
)  # fmt: skip
ASKED = [
    (CHAR, READ | WRITE, 195, 255, 1), (CHAR, READ, 195, 255, 1), (CHAR, 7, 195, 255, 0),
    (CHAR, READ | WRITE, 237, 0, 0), (CHAR, MKNOD, 237, 0, 1), (CHAR, READ | WRITE, 195, 1, 0),
    (CHAR, READ, 195, 1, 1), (BLOCK, READ | WRITE, 8, 16, 1), (BLOCK, READ, 195, 255, 0),
    (CHAR, READ | WRITE, 136, 9, 1), (CHAR, 7, 1, 3, 1),
]  # fmt: skip
Make = Callable[..., bytes]
MAKERS: list[Make] = [runc, lambda *rules: runc(*rules, jump=JMP32), crun, systemd]


def context(kind: int, access: int, major: int, minor: int) -> bytes:
    return struct.pack("<III", access << 16 | kind, major, minor)


@pytest.mark.parametrize("make", MAKERS, ids=["runc", "runc 32", "crun", "systemd"])
@pytest.mark.parametrize(("kind", "access", "major", "minor", "says"), ASKED)
def test_generators(
    make: Make, kind: int, access: int, major: int, minor: int, says: int
) -> None:  # fmt: skip
    assert run(make(*RULES), context(kind, access, major, minor)) == says


def test_bytes_of_one_whole_program() -> None:
    """``c 195:255 rw`` as runc makes it, spelled out: this is what the kernel gives back."""
    program = bytes.fromhex(
        "6112000000000000 54020000ffff0000 6113000000000000 7403000010000000"
        "6114040000000000 6115080000000000 5502070002000000 bc31000000000000"
        "5401000006000000 5d31040000000000 550403 00c3000000 550502 00ff000000"
        "b400000001000000 9500000000000000 b400000000000000 9500000000000000".replace(" ", "")
    )
    assert program == runc(Rule(CHAR, READ | WRITE, 195, 255))
    assert run(program, context(CHAR, READ | WRITE, 195, 255)) == 1
    assert run(program, context(CHAR, READ | WRITE, 237, 0)) == 0


@given(
    st.lists(st.tuples(st.sampled_from([BLOCK, CHAR]), st.integers(1, 7),
                       st.sampled_from([None, 1, 195]), st.sampled_from([None, 0, 255])),
             max_size=6),
    st.tuples(st.sampled_from([BLOCK, CHAR]), st.integers(1, 7), st.sampled_from([1, 195, 237]),
              st.sampled_from([0, 1, 255])),
)  # fmt: skip
def test_all_shapes_agree_with_the_rules(
    lines: list[tuple[int, int, int | None, int | None]], asked: tuple[int, int, int, int]
) -> None:
    rules = [Rule(*line) for line in lines if line[2] is not None or line[3] is None]
    kind, access, major, minor = asked
    says = int(any(
        rule.kind == kind and access & rule.access == access
        and rule.major in (None, major) and rule.minor in (None, minor)
        for rule in rules
    ))  # fmt: skip
    for make in MAKERS:
        assert run(make(*rules), context(*asked)) == says


def test_a_list_of_denials() -> None:
    program = runc(Rule(CHAR, 7, 195, 255, REFUSE), default=1)
    assert run(program, context(CHAR, READ, 195, 255)) == 0
    assert run(program, context(CHAR, READ, 195, 0)) == 1


def test_constants_that_a_hardened_kernel_blinded() -> None:
    """bpf_jit_harden=2: every constant goes through register 11, masked by a random one."""
    secret = 0x5A17C3
    masked = insn(ALU64 | MOV, 11, immediate=195 ^ secret) + insn(ALU64 | XOR, 11, immediate=secret)
    program = HEAD + masked + insn(JMP | JEQ | REGISTER, 4, 11, 2) + end(0) + end(1)
    assert run(program, context(CHAR, READ, 195, 7)) == 1
    assert run(program, context(CHAR, READ, 194, 7)) == 0


def test_jumps_of_32_bits_see_no_more() -> None:
    high = insn(ALU64 | MOV, 6, immediate=1) + insn(ALU64 | 0x60, 6, immediate=32)
    high += insn(ALU64 | ADD, 6, immediate=5)
    for jump, says in ((JMP32, 1), (JMP, 0)):
        program = high + insn(jump | JEQ, 6, 0, 2, 5) + end(0) + end(1)
        assert run(program, context(CHAR, 7, 1, 1)) == says


def test_parts_of_the_context_and_the_stack() -> None:
    program = (
        load(2, 0, code=0x69)  # 16 bits: the type
        + insn(0x63, 10, 2, -4) + insn(0x62, 10, 0, -8, 77) + insn(0x61, 0, 10, -4)
        + insn(JMP | JEQ, 0, 0, 2, CHAR) + end(0) + end(1)
    )  # fmt: skip
    assert run(program, context(CHAR, 7, 1, 1)) == 1
    assert run(program, context(BLOCK, 7, 1, 1)) == 0


def test_signs() -> None:
    greater = HEAD + insn(ALU64 | MOV, 6, immediate=-1)
    unsigned = greater + insn(JMP | 0x20 | REGISTER, 6, 4, 2) + end(0) + end(1)
    signed = greater + insn(JMP | 0x60 | REGISTER, 6, 4, 2) + end(0) + end(1)
    assert run(unsigned, context(CHAR, 7, 195, 0)) == 1
    assert run(signed, context(CHAR, 7, 195, 0)) == 0
    narrow = HEAD + insn(ALU32 | MOV, 6, immediate=-1) + insn(ALU64 | 0x70, 6, immediate=32)
    assert run(narrow + insn(JMP | JEQ, 6, 0, 2, 0) + end(0) + end(1), context(2, 7, 1, 1)) == 1


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (b"", "whole instructions"),
        (b"\0" * 7, "whole instructions"),
        (insn(JMP | JA, offset=-1), "steps"),
        (insn(ALU32 | MOV, immediate=1), "runs out"),
        (insn(JMP | JA, offset=30000), "runs out"),
        (insn(0x85, immediate=14) + EXIT, "helper"),
        (insn(0x18, 1, 1) + insn(0) + EXIT, "map"),
        (insn(0xDB, 10, 2, -8) + EXIT, "atomic"),
        (insn(0xC3, 10, 1, -8) + EXIT, "atomic"),
        (insn(ALU32 | MOV | REGISTER, 0, 1) + EXIT, "pointer"),
        (insn(ALU64 | MOV | REGISTER, 0, 1) + EXIT, "pointer"),
        (insn(JMP | JNE, 1, 0, 0, 0) + end(1), "pointer"),
        (EXIT, "unset"),
        (load(0, 12) + EXIT, "beside its context"),
        (load(0, -4) + EXIT, "beside its context"),
        (insn(0x61, 0, 10, -4) + EXIT, "nobody wrote"),
        (insn(0x62, 10, 0, -516, 1) + EXIT, "outside its stack"),
        (insn(0x62, 1, 0, 0, 1) + EXIT, "outside its stack"),
        (insn(ALU32 | MOV, 14, immediate=1) + EXIT, "register"),
        (insn(ALU64 | MOV | REGISTER, 0, 0, offset=8) + EXIT, "newer"),
        (insn(0xD4, 0, immediate=16) + EXIT, "newer"),
        (end(2), "returns 2"),
        (end(-1), "returns 4294967295"),
    ],
)
def test_what_is_not_known_is_never_guessed(program: bytes, words: str) -> None:
    answer = run(program, context(CHAR, 7, 195, 0))
    assert isinstance(answer, str)
    assert words in answer


@given(st.binary(max_size=256).map(lambda data: data[: len(data) // 8 * 8]))
def test_any_bytes_end(program: bytes) -> None:
    """Nothing but 0, 1 or a reason, and no exception."""
    assert run(program, context(CHAR, 6, 195, 0)) in (0, 1) or isinstance(
        run(program, context(CHAR, 6, 195, 0)), str
    )


def test_a_pointer_that_moves() -> None:
    program = (
        insn(ALU64 | MOV | REGISTER, 6, 1) + insn(ALU64 | ADD, 6, immediate=4)
        + insn(0x61, 0, 6, 0) + insn(ALU32 | AND, 0, immediate=1) + EXIT
    )  # fmt: skip
    assert run(program, context(CHAR, 7, 195, 0)) == 1
    assert run(program, context(CHAR, 7, 194, 0)) == 0


# --- cgroups ----------------------------------------------------------------------------

UVM = RuledDevice("c", 237, 0)
GIVES = runc(Rule(CHAR, READ | WRITE, 237, 0))


def groups(**by_path: tuple[int, ...] | Unread) -> DeviceCgroups:
    paths = {"/": (), "/a": (), "/a/b": ()}
    paths |= {"/" + key.replace("_", "/").lstrip("/"): ids for key, ids in by_path.items()}  # type: ignore[dict-item,misc]
    programs = {1: GIVES, 2: runc(), 3: insn(0x85) + EXIT, 4: systemd_strict()}
    return DeviceCgroups(2, {}, paths, programs)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("attached", "says"),
    [
        ({}, "yes"),
        ({"a_b": (1,)}, "yes"),
        ({"a_b": (2,)}, "no"),
        ({"a_b": (1, 4)}, "no"),  # systemd's own beside runc's
        ({"a_b": (1,), "a": (2,)}, "no"),  # above
        ({"a_b": (1,), "": (2,)}, "no"),
        ({"a_b": (1, 3)}, "unread"),
        ({"a_b": (3, 2)}, "no"),  # whoever refuses decides
        ({"a_b": (1, 99)}, "unread"),
        ({"a_b": (1,), "a": Unread("/a", "refused")}, "unread"),
    ],
)
def test_everything_above_has_to_allow(attached: dict[str, tuple[int, ...]], says: str) -> None:
    assert allowed(groups(**attached), "/a/b", UVM).says == says


def test_a_cgroup_that_was_not_asked_is_not_allowed() -> None:
    assert allowed(groups(), "/a/c", UVM).says == "unread"


def test_who_refuses_is_named() -> None:
    assert (
        "program 2 of /a refuses c 237:0 rw" in allowed(groups(a_b=(1,), a=(2,)), "/a/b", UVM).why
    )
