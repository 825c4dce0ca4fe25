# SPDX-License-Identifier: Apache-2.0
"""A device program of cgroup v2, run: a small, bounded interpreter of eBPF.

struct bpf_cgroup_dev_ctx {u32 access_type, major, minor}, access_type = access << 16 | type
(uapi/linux/bpf.h, since 4.15).  Instructions as in bpf/standardization/instruction-set.rst, of a
little-endian machine.  runc, crun and systemd use arithmetic, jumps and loads of the context
alone; hardened kernels blind constants through register 11.  Whatever is not known here (helpers,
maps, atomics, pointers as numbers) means "cannot be decided": nothing is guessed.
"""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

STEPS_MOST: Final = 100_000
_INSN: Final = struct.Struct("<BBhi")
_M64: Final = (1 << 64) - 1
_M32: Final = (1 << 32) - 1
_STACK_BYTES: Final = 512
_FRAME: Final = 10
_REGISTERS: Final = 12
"""r0 to r10, and the one that blinding uses."""
_SIZES: Final = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}
_LDX, _ST, _STX, _ALU, _JMP, _JMP32, _ALU64 = 1, 2, 3, 4, 5, 6, 7
_EXIT: Final = 0x95
_JA: Final = 0x05
_MODE: Final = 0xE0
_MEM: Final = 0x60
_ADD, _SUB, _NEG, _MOV, _ARSH = 0x0, 0x1, 0x8, 0xB, 0xC


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


_OPERATIONS: Final[dict[int, Callable[[int, int, int], int]]] = {
    _ADD: lambda a, b, _: a + b,
    _SUB: lambda a, b, _: a - b,
    0x2: lambda a, b, _: a * b,
    0x3: lambda a, b, _: a // b if b else 0,
    0x4: lambda a, b, _: a | b,
    0x5: lambda a, b, _: a & b,
    0x6: lambda a, b, bits: a << (b & (bits - 1)),
    0x7: lambda a, b, bits: a >> (b & (bits - 1)),
    _NEG: lambda a, _b, _: -a,
    0x9: lambda a, b, _: a % b if b else a,
    0xA: lambda a, b, _: a ^ b,
    _MOV: lambda _a, b, _: b,
    _ARSH: lambda a, b, bits: _signed(a, bits) >> (b & (bits - 1)),
}
_TESTS: Final[dict[int, Callable[[int, int, int], bool]]] = {
    0x1: lambda a, b, _: a == b,
    0x2: lambda a, b, _: a > b,
    0x3: lambda a, b, _: a >= b,
    0x4: lambda a, b, _: bool(a & b),
    0x5: lambda a, b, _: a != b,
    0x6: lambda a, b, bits: _signed(a, bits) > _signed(b, bits),
    0x7: lambda a, b, bits: _signed(a, bits) >= _signed(b, bits),
    0xA: lambda a, b, _: a < b,
    0xB: lambda a, b, _: a <= b,
    0xC: lambda a, b, bits: _signed(a, bits) < _signed(b, bits),
    0xD: lambda a, b, bits: _signed(a, bits) <= _signed(b, bits),
}


class Insn(NamedTuple):
    """One eBPF instruction: struct bpf_insn of uapi/linux/bpf.h, its two registers apart."""

    code: int
    to: int
    source: int
    offset: int
    immediate: int


class _Pointer(NamedTuple):
    """Into the context (``ctx``), or down from the frame pointer (``stack``)."""

    region: str
    offset: int


_Value: TypeAlias = "int | _Pointer | None"
"""None: nobody set it."""


class _Undecidable(Exception):
    """Why the program's answer cannot be known."""


@lru_cache(maxsize=8192)
def run(program: bytes, context: bytes) -> int | str:
    """0: refused, 1: allowed; a string: why that cannot be decided."""
    if not program or len(program) % _INSN.size:
        return "it is not made of whole instructions"
    try:
        result = _Machine(context).run(_decoded(program))
    except _Undecidable as problem:
        return str(problem)
    return result if result in (0, 1) else f"it returns {result}"


@lru_cache(maxsize=512)
def _decoded(program: bytes) -> tuple[Insn, ...]:
    return tuple(
        Insn(code, registers & 15, registers >> 4, offset, immediate)
        for code, registers, offset, immediate in _INSN.iter_unpack(program)
    )


class _Machine:
    """One run of a device program: its registers, its stack and the context it is asked about."""

    def __init__(self, context: bytes) -> None:
        self._context = context
        self._stack: dict[int, int] = {}
        self._registers: list[_Value] = [None] * _REGISTERS
        self._registers[1] = _Pointer("ctx", 0)
        self._registers[_FRAME] = _Pointer("stack", 0)

    def run(self, program: tuple[Insn, ...]) -> int:
        """The value of r0 at the end."""
        at, end = 0, len(program)
        for _ in range(STEPS_MOST):
            if not 0 <= at < end:
                raise _Undecidable("it runs out of its instructions")
            insn = program[at]
            code, to, source, offset, _immediate = insn
            if code == _EXIT:
                return self._number(0)
            if to >= _REGISTERS or source >= _REGISTERS:
                raise _Undecidable("it names a register that there is not")
            at += 1
            kind = code & 7
            if kind in (_JMP, _JMP32):
                if code == _JA or self._is_taken(insn):
                    at += offset
            elif kind in (_ALU, _ALU64):
                self._compute(insn)
            else:
                self._move(insn)
        raise _Undecidable(f"more than {STEPS_MOST} steps")

    def _number(self, register: int) -> int:
        value = self._registers[register]
        if not isinstance(value, int):
            raise _Undecidable("it uses a pointer or an unset register as a number")
        return value

    def _operand(self, insn: Insn) -> int:
        """The second one, as 64 bits: a register, or the immediate with its sign."""
        return self._number(insn.source) if insn.code & 8 else insn.immediate & _M64

    def _is_taken(self, insn: Insn) -> bool:
        test = _TESTS.get(insn.code >> 4)
        if test is None:
            raise _Undecidable(_unknown(insn, "a helper, or newer than this"))
        left, right = self._number(insn.to), self._operand(insn)
        if insn.code & 7 == _JMP32:
            return test(left & _M32, right & _M32, 32)
        return test(left, right, 64)

    def _compute(self, insn: Insn) -> None:
        operation, is_wide = insn.code >> 4, insn.code & 7 == _ALU64
        compute = _OPERATIONS.get(operation)
        if compute is None or insn.offset:
            raise _Undecidable(_unknown(insn, "arithmetic that is newer than this"))
        if is_wide and self._point(operation, insn):
            return
        left = 0 if operation == _MOV else self._number(insn.to)
        right = 0 if operation == _NEG else self._operand(insn)
        if is_wide:
            self._registers[insn.to] = compute(left, right, 64) & _M64
        else:
            self._registers[insn.to] = compute(left & _M32, right & _M32, 32) & _M32

    def _point(self, operation: int, insn: Insn) -> bool:
        """Whether it was a move of a pointer, or a number added to one."""
        if operation == _MOV and insn.code & 8:
            value = self._registers[insn.source]
            if isinstance(value, _Pointer):
                self._registers[insn.to] = value
                return True
        base = self._registers[insn.to]
        if operation in (_ADD, _SUB) and isinstance(base, _Pointer):
            by = _signed(self._operand(insn), 64)
            offset = base.offset + (by if operation == _ADD else -by)
            self._registers[insn.to] = base._replace(offset=offset)
            return True
        return False

    def _move(self, insn: Insn) -> None:
        kind, size = insn.code & 7, _SIZES[insn.code & 0x18]
        if insn.code & _MODE != _MEM or kind not in (_LDX, _ST, _STX):
            raise _Undecidable(_unknown(insn, "a map, an address or an atomic"))
        if kind == _LDX:
            self._registers[insn.to] = self._load(insn, size)
        else:
            value = insn.immediate & _M64 if kind == _ST else self._number(insn.source)
            self._store(insn, size, value)

    def _load(self, insn: Insn, size: int) -> int:
        base = self._registers[insn.source]
        if not isinstance(base, _Pointer):
            raise _Undecidable("it loads from what is no pointer")
        start = base.offset + insn.offset
        if base.region == "ctx":
            if start < 0 or start + size > len(self._context):
                raise _Undecidable("it reads beside its context")
            return int.from_bytes(self._context[start : start + size], "little")
        try:
            cells = bytes(self._stack[start + index] for index in range(size))
        except KeyError:
            raise _Undecidable("it reads stack that nobody wrote") from None
        return int.from_bytes(cells, "little")

    def _store(self, insn: Insn, size: int, value: int) -> None:
        base = self._registers[insn.to]
        start = base.offset + insn.offset if isinstance(base, _Pointer) else 0
        is_stack = isinstance(base, _Pointer) and base.region == "stack"
        if not is_stack or start < -_STACK_BYTES or start + size > 0:
            raise _Undecidable("it writes outside its stack")
        for index in range(size):
            self._stack[start + index] = value >> 8 * index & 0xFF


def _unknown(insn: Insn, words: str) -> str:
    return f"instruction {insn.code:#04x} ({words})"
