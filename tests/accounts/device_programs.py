"""Device programs of cgroup v2 in the shapes that runc, crun and systemd give them.

Written from what their generators are documented to emit (runc
libcontainer/cgroups/ebpf/devicefilter, crun src/libcrun/ebpf.c, systemd src/core/bpf-devices.c).
"""

import struct
from typing import NamedTuple

ALU32, JMP, JMP32, ALU64 = 4, 5, 6, 7
ADD, AND, RSH, XOR, MOV = 0x00, 0x50, 0x70, 0xA0, 0xB0
JA, JEQ, JNE = 0x00, 0x10, 0x50
REGISTER = 8
ALLOW, REFUSE = 1, 0


class Rule(NamedTuple):
    kind: int
    """1: block, 2: character."""
    access: int
    """1 mknod, 2 read, 4 write."""
    major: int | None = None
    minor: int | None = None
    verdict: int = ALLOW


def insn(code: int, to: int = 0, source: int = 0, offset: int = 0, immediate: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, offset, immediate)


def load(to: int, offset: int, code: int = 0x61) -> bytes:
    return insn(code, to, 1, offset)


EXIT = insn(0x95)
HEAD = b"".join([
    load(2, 0), insn(ALU32 | AND, 2, immediate=0xFFFF),
    load(3, 0), insn(ALU32 | RSH, 3, immediate=16),
    load(4, 4), load(5, 8),
])  # fmt: skip
"""Type to r2, access to r3, major to r4, minor to r5: all three begin so."""


def end(verdict: int, wide: bool = False) -> bytes:
    return insn((ALU64 if wide else ALU32) | MOV, immediate=verdict) + EXIT


def _tests(rule: Rule, jump: int) -> list[tuple[int, int, int, int]]:
    """(code, register, other register, immediate) of what has to hold."""
    found = [(jump | JNE, 2, 0, rule.kind)]
    if rule.access != 7:
        found.append((jump | JNE | REGISTER, 1, 3, 0))
    if rule.major is not None:
        found.append((jump | JNE, 4, 0, rule.major))
    if rule.minor is not None:
        found.append((jump | JNE, 5, 0, rule.minor))
    return found


def runc(*rules: Rule, default: int = REFUSE, jump: int = JMP, wide: bool = False) -> bytes:
    """Each rule a block that ends in a verdict; crun's moves are 64 bits wide.  ``jump``: newer
    generators compare 32 bits.
    """
    program = HEAD
    for rule in rules:
        tests = _tests(rule, jump)
        # The access test needs two instructions before its jump.
        length = len(tests) + (2 if rule.access != 7 else 0) + 2
        at, block = 0, b""
        for code, to, source, immediate in tests:
            if code & REGISTER:
                block += insn(ALU32 | MOV | REGISTER, 1, 3)
                block += insn(ALU32 | AND, 1, immediate=rule.access)
                at += 2
            block += insn(code, to, source, length - at - 1, immediate)
            at += 1
        program += block + end(rule.verdict, wide)
    return program + end(default, wide)


def crun(*rules: Rule) -> bytes:
    return runc(*rules, wide=True)


def systemd(*rules: Rule) -> bytes:
    """Access first, then the type; every rule jumps to the one place where it is allowed."""
    blocks = []
    for rule in rules:
        tests = _tests(rule._replace(access=7), JMP)
        access = 3 if rule.access != 7 else 0
        block = b""
        if access:
            block += insn(ALU32 | MOV | REGISTER, 1, 3)
            block += insn(ALU32 | AND, 1, immediate=rule.access)
            block += insn(JMP | JNE | REGISTER, 1, 3, len(tests) + 1)
        for at, (code, to, source, immediate) in enumerate(tests):
            block += insn(code, to, source, len(tests) - at, immediate)
        blocks.append(block)
    # Behind each block one jump to the end; then: refuse, jump over, allow, exit.
    lengths = [len(block) // 8 + 1 for block in blocks]
    program = HEAD
    for index, block in enumerate(blocks):
        left = sum(lengths[index + 1 :]) + 2
        program += block + insn(JMP | JA, offset=left)
    program += insn(ALU64 | MOV, immediate=0) + insn(JMP | JA, offset=1)
    return program + insn(ALU64 | MOV, immediate=1) + EXIT


def systemd_strict() -> bytes:
    """DevicePolicy=strict without any DeviceAllow=."""
    return end(REFUSE, wide=True)
