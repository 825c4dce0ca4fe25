# SPDX-License-Identifier: Apache-2.0
"""System calls that no driver's library needs are refused to who asks as a container: seccomp(2).

It stands in for the container's own filter, which cannot be copied without stopping a process of
the container (PTRACE_SECCOMP_GET_FILTER).  Threads may be made, processes and programs not, so
nothing can be left behind; nor may it undo that it dies with its parent.
Numbers: asm/unistd_64.h of x86, asm-generic/unistd.h for all newer architectures.
"""

import ctypes
import os
import struct
from errno import ENOSYS, EPERM
from typing import Final, NamedTuple

_PR_SET_SECCOMP: Final = 22
_SECCOMP_MODE_FILTER: Final = 2
_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_HAS_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06
_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT = 0, 4, 16  # struct seccomp_data, little endian
_X32: Final = 0x40000000
_CLONE_THREAD: Final = 0x10000
_PRCTLS: Final = (1, 4)  # PR_SET_PDEATHSIG, PR_SET_DUMPABLE


class Numbers(NamedTuple):
    """Of one architecture."""

    architecture: int
    """AUDIT_ARCH_*."""
    clone: int
    prctl: int
    refused: tuple[int, ...]


CLONE3: Final = 435
# The same on every architecture: pidfd_getfd, mount and io_uring's new calls, quotactl_fd.
_EVERYWHERE: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 442, 443)
X86_64: Final = Numbers(
    0xC000003E, 56, 157,
    (*_EVERYWHERE, 57, 58, 59, 322,  # fork, vfork, execve, execveat
     101, 310, 311, 312,  # ptrace, process_vm_readv, process_vm_writev, kcmp
     272, 308, 165, 166, 155, 161,  # unshare, setns, mount, umount2, pivot_root, chroot
     321, 298, 323, 300,  # bpf, perf_event_open, userfaultfd, fanotify_init
     248, 249, 250, 303, 304,  # add_key, request_key, keyctl, name_to_handle_at, open_by_handle_at
     175, 313, 176, 246, 320,  # init_module, finit_module, delete_module, kexec_load, _file_load
     167, 168, 169, 163, 179,  # swapon, swapoff, reboot, acct, quotactl
     164, 227, 159, 305, 103,  # settimeofday, clock_settime, adjtimex, clock_adjtime, syslog
     135, 153, 170, 171, 212,  # personality, vhangup, sethostname, setdomainname, lookup_dcookie
     256, 279, 154, 172, 173,  # migrate_pages, move_pages, modify_ldt, iopl, ioperm
     105, 106, 113, 114, 117, 119, 122, 123),  # set(re,res,fs)uid and gid: clear PDEATHSIG
)  # fmt: skip
GENERIC: Final = Numbers(
    0xC00000B7, 220, 167,
    (*_EVERYWHERE, 221, 281,  # execve, execveat
     117, 270, 271, 272,  # ptrace, process_vm_readv, process_vm_writev, kcmp
     97, 268, 40, 39, 41, 51,  # unshare, setns, mount, umount2, pivot_root, chroot
     280, 241, 282, 262,  # bpf, perf_event_open, userfaultfd, fanotify_init
     217, 218, 219, 264, 265,  # add_key, request_key, keyctl, name_to_handle_at, open_by_handle_at
     105, 273, 106, 104, 294,  # init_module, finit_module, delete_module, kexec_load, _file_load
     224, 225, 142, 89, 60,  # swapon, swapoff, reboot, acct, quotactl
     170, 112, 171, 266, 116,  # settimeofday, clock_settime, adjtimex, clock_adjtime, syslog
     92, 58, 161, 162, 18,  # personality, vhangup, sethostname, setdomainname, lookup_dcookie
     238, 239,  # migrate_pages, move_pages
     143, 144, 145, 146, 147, 149, 151, 152),  # set(re,res,fs)uid and gid: clear PDEATHSIG
)  # fmt: skip
_MACHINES: Final = {"x86_64": X86_64, "aarch64": GENERIC}


def refuse_calls() -> None:
    """In this process, for good; it must have no_new_privs.  OSError; ENOSYS where the numbers of
    this machine's architecture are not known.
    """
    numbers = _MACHINES.get(os.uname().machine)
    if numbers is None:
        raise OSError(ENOSYS, "system calls of this kind of machine are not known")
    program = filter_of(numbers)
    room = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HP", len(program) // 8, ctypes.addressof(room))
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), head):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def filter_of(numbers: Numbers) -> bytes:
    """The program, struct sock_filter by struct sock_filter."""
    refuse, absent = _ERRNO | EPERM, _ERRNO | ENOSYS
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, numbers.architecture),
        (_RETURN, 0, 0, refuse),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if numbers is X86_64:
        steps += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, refuse)]
    for number in numbers.refused:
        steps += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    # Without clone3, whose flags lie in memory, the C library falls back to clone.
    steps += [(_EQUAL, 0, 1, CLONE3), (_RETURN, 0, 0, absent)]
    steps += [
        (_EQUAL, 0, 4, numbers.clone),
        (_LOAD, 0, 0, _FIRST_AT),
        (_HAS_BIT, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, numbers.prctl),
        (_LOAD, 0, 0, _FIRST_AT),
        *((_EQUAL, 1 - place, place, option) for place, option in enumerate(_PRCTLS)),
        (_RETURN, 0, 0, refuse),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)
