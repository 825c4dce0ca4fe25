# SPDX-License-Identifier: Apache-2.0
"""memfd_create(2), since Linux 3.17: a file that is memory.  ``os`` has it only where Python was
compiled against glibc 2.27 or later, which a Python made for hosts of every age is not (that of
seawall-x86_64, of uv).  The guard's process holds this, so it imports next to nothing.
"""

import os

MFD_CLOEXEC = 0x1
MFD_ALLOW_SEALING = 0x2
_NUMBERS = {"x86_64": 319, "aarch64": 279, "ppc64le": 360, "s390x": 350, "riscv64": 279}


def memory_file(name: str, flags: int = MFD_CLOEXEC) -> int:
    """Its descriptor; OSError."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, flags)
    return _by_number(name, flags)


def _by_number(name: str, flags: int) -> int:
    import ctypes  # noqa: PLC0415 - of a Python that lacks the call
    import errno  # noqa: PLC0415

    number = _NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    fd: int = call(ctypes.c_long(number), ctypes.c_char_p(name.encode()), ctypes.c_uint(flags))
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd
