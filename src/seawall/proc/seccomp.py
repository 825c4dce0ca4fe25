# SPDX-License-Identifier: Apache-2.0
"""Programs of seccomp(2): what they are made of, and taking one on for good.

struct seccomp_data and struct sock_filter (include/uapi/linux/seccomp.h, filter.h), on machines
that are little endian.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from errno import ENOSYS

LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
HAS_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER_AT, ARCHITECTURE_AT, FIRST_AT, SECOND_AT = 0, 4, 16, 24
X32 = 0x40000000
X86_64, AARCH64 = 0xC000003E, 0xC00000B7  # AUDIT_ARCH_*

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_SET_MODE_FILTER, _SPEC_ALLOW = 1, 4
_SECCOMP = {"x86_64": 317, "aarch64": 277}

Step = tuple[int, int, int, int]


def head(architecture: int, refuse: int) -> list[Step]:
    """Whoever calls in another way (32 bit, x32) is refused everything; then the number is there
    to be judged.
    """
    steps = [
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, refuse),
        (LOAD, 0, 0, NUMBER_AT),
    ]
    if architecture == X86_64:
        steps += [(AT_LEAST, 0, 1, X32), (RETURN, 0, 0, refuse)]
    return steps


def packed_steps(steps: Iterable[Step]) -> bytes:
    """The program, struct sock_filter by struct sock_filter."""
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def take_on(program: bytes, *, is_fast: bool = False) -> None:
    """In this thread and what it starts; it must have no_new_privs, or CAP_SYS_ADMIN.  OSError.

    ``is_fast``: nothing in here is to be protected from itself by slower branches, which kernels
    before 5.16 turn on with a filter (SECCOMP_FILTER_FLAG_SPEC_ALLOW, since 4.17).
    """
    room = ctypes.create_string_buffer(program, len(program))
    whole = struct.pack("@HP", len(program) // 8, ctypes.addressof(room))
    library = ctypes.CDLL(None, use_errno=True)
    number = _SECCOMP.get(os.uname().machine)
    if is_fast and number and not library.syscall(number, _SET_MODE_FILTER, _SPEC_ALLOW, whole):
        return
    if library.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), whole):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def unknown_machine() -> OSError:
    """The numbers of its system calls are not known."""
    return OSError(ENOSYS, "system calls of this kind of machine are not known")
