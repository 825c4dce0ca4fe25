# SPDX-License-Identifier: Apache-2.0
"""System calls that no driver's library needs are refused to who asks as a container: seccomp(2).

It stands in for the container's own filter, which cannot be copied without stopping a process of
the container (PTRACE_SECCOMP_GET_FILTER).  Threads may be made, processes and programs not, so
nothing can be left behind; nor may it undo that it dies with its parent.
Numbers: asm/unistd_64.h of x86, asm-generic/unistd.h for all newer architectures.
"""

import os
from errno import ENOSYS, EPERM
from typing import Final, NamedTuple

from seawall.proc import seccomp
from seawall.proc.seccomp import ALLOW, EQUAL, ERRNO, FIRST_AT, HAS_BIT, LOAD, RETURN

_CLONE_THREAD: Final = 0x10000
_PRCTLS: Final = (1, 4)  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE


class Numbers(NamedTuple):
    """Numbers of system calls on one architecture: those that are judged, and the refused ones."""

    architecture: int
    """AUDIT_ARCH_*."""
    clone: int
    prctl: int
    refused: tuple[int, ...]


CLONE3: Final = 435
# The same on every architecture: pidfd_getfd, mount and io_uring's new calls, quotactl_fd.
_EVERYWHERE: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443)
# On x86_64, and on all newer architectures: None where that has no such call.
_REFUSED: Final = (
    (57, None), (58, None), (59, 221), (322, 281),  # fork, vfork, execve, execveat
    (101, 117), (310, 270), (311, 271), (312, 272),  # ptrace, process_vm_readv, _writev, kcmp
    (272, 97), (308, 268), (165, 40), (166, 39),  # unshare, setns, mount, umount2
    (155, 41), (161, 51), (321, 280), (298, 241),  # pivot_root, chroot, bpf, perf_event_open
    (323, 282), (300, 262), (303, 264), (304, 265),  # userfaultfd, fanotify_init, *_handle_at
    (248, 217), (249, 218), (250, 219),  # add_key, request_key, keyctl
    (175, 105), (313, 273), (176, 106),  # init_module, finit_module, delete_module
    (246, 104), (320, 294), (169, 142), (163, 89),  # kexec_load, kexec_file_load, reboot, acct
    (167, 224), (168, 225), (179, 60), (103, 116),  # swapon, swapoff, quotactl, syslog
    (164, 170), (227, 112), (159, 171), (305, 266),  # settimeofday, clock_settime, *_adjtime(x)
    (135, 92), (153, 58), (170, 161), (171, 162),  # personality, vhangup, sethostname, _domainname
    (212, 18), (256, 238), (279, 239),  # lookup_dcookie, migrate_pages, move_pages
    (154, None), (172, None), (173, None),  # modify_ldt, iopl, ioperm
    (113, 145), (114, 143), (117, 147), (119, 149), (105, 146), (106, 144), (122, 151), (123, 152),
    # set(re,res,fs)uid and gid: clear PDEATHSIG
)  # fmt: skip
X86_64: Final = Numbers(seccomp.X86_64, 56, 157, (*_EVERYWHERE, *(one for one, _ in _REFUSED)))
GENERIC: Final = Numbers(
    seccomp.AARCH64, 220, 167, (*_EVERYWHERE, *(one for _, one in _REFUSED if one is not None))
)
_MACHINES: Final = {"x86_64": X86_64, "aarch64": GENERIC}


def refuse_calls() -> None:
    """In this process, for good; it must have no_new_privs.  OSError; ENOSYS where the numbers of
    this machine's architecture are not known.
    """
    numbers = _MACHINES.get(os.uname().machine)
    if numbers is None:
        raise seccomp.unknown_machine()
    seccomp.take_on(filter_of(numbers))


def filter_of(numbers: Numbers) -> bytes:
    """The program, struct sock_filter by struct sock_filter."""
    refuse, absent = ERRNO | EPERM, ERRNO | ENOSYS
    steps = seccomp.head(numbers.architecture, refuse)
    for number in numbers.refused:
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, refuse)]
    # Without clone3, whose flags lie in memory, the C library falls back to clone.
    steps += [(EQUAL, 0, 1, CLONE3), (RETURN, 0, 0, absent)]
    steps += [
        (EQUAL, 0, 4, numbers.clone),
        (LOAD, 0, 0, FIRST_AT),
        (HAS_BIT, 1, 0, _CLONE_THREAD),
        (RETURN, 0, 0, refuse),
        (RETURN, 0, 0, ALLOW),
        (EQUAL, 0, 4, numbers.prctl),
        (LOAD, 0, 0, FIRST_AT),
        *((EQUAL, 1 - place, place, option) for place, option in enumerate(_PRCTLS)),
        (RETURN, 0, 0, refuse),
        (RETURN, 0, 0, ALLOW),
    ]
    return seccomp.packed_steps(steps)
