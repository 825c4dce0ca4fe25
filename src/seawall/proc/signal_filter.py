# SPDX-License-Identifier: Apache-2.0
"""A process that can signal nobody: it parses bytes that others wrote, and a pid out of them must
reach nothing.  Root may signal root without CAP_KILL (kill(2)), so it is a filter: seccomp(2).

Refused with EPERM is each call that sends a signal, ptrace(2), which stops and writes into others,
and what has the kernel send one: an owner of a descriptor (F_SETOWN), a program for bpf(2).

Children of such a process are not killed: they end themselves (``proc/forked_child.py``).
Numbers: asm/unistd_64.h of x86, asm-generic/unistd.h.
"""

import os
import struct
from errno import EPERM

from seawall.proc import seccomp
from seawall.proc.capabilities import no_new_privileges
from seawall.proc.seccomp import ALLOW, EQUAL, ERRNO, FIRST_AT, LOAD, RETURN, SECOND_AT, Step

# kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_send_signal, ptrace,
# process_vm_writev
_REFUSED = {
    "x86_64": (62, 200, 234, 129, 297, 424, 101, 311),
    "aarch64": (129, 130, 131, 138, 240, 424, 117, 271),
}
# fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX; ioctl: FIOSETOWN, SIOCSPGRP; bpf: BPF_PROG_LOAD.
_COMMANDS = (
    ({"x86_64": 72, "aarch64": 25}, SECOND_AT, (8, 10, 15)),
    ({"x86_64": 16, "aarch64": 29}, SECOND_AT, (0x8901, 0x8902)),
    ({"x86_64": 321, "aarch64": 280}, FIRST_AT, (5,)),
)
_ARCHITECTURES = {"x86_64": seccomp.X86_64, "aarch64": seccomp.AARCH64}
_is_on = False


def is_on() -> bool:
    """Whether this process, or the one that forked it, has given up signals."""
    return _is_on


def refuse_signals() -> str:
    """For good, here and in all that this process starts; before its first thread.  Why that could
    not be had, in words, or empty.
    """
    global _is_on  # noqa: PLW0603 - of the whole process
    try:
        machine = os.uname().machine
        if machine not in _REFUSED or struct.calcsize("P") != 8:
            raise seccomp.unknown_machine()
        no_new_privileges()
        seccomp.take_on(signal_program(machine), is_fast=True)
    except OSError as error:
        return str(error.strerror)
    _is_on = True
    return ""


def signal_program(machine: str) -> bytes:
    """For ``uname -m``."""
    refuse = ERRNO | EPERM
    steps: list[Step] = seccomp.head(_ARCHITECTURES[machine], refuse)
    for number in _REFUSED[machine]:
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    for numbers, at, commands in _COMMANDS:
        steps += [(EQUAL, 0, len(commands) + 3, numbers[machine]), (LOAD, 0, 0, at)]
        steps += [
            (EQUAL, len(commands) - place, 0, command) for place, command in enumerate(commands)
        ]
        steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, refuse)]
    return seccomp.packed_steps([*steps, (RETURN, 0, 0, ALLOW)])
