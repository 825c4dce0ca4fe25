"""A file in memory, by Python's call and by the kernel's number: the same file."""

import errno
import fcntl
import os
from collections.abc import Callable

import pytest

from seawall.proc import memory_file
from seawall.proc.memory_file import MFD_ALLOW_SEALING, MFD_CLOEXEC


@pytest.mark.parametrize("make", [memory_file.memory_file, memory_file._by_number])
def test_what_is_written_is_read_back_and_can_be_sealed(make: Callable[[str, int], int]) -> None:
    fd = make("seawall-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)
    try:
        assert os.readlink(f"/proc/self/fd/{fd}").startswith("/memfd:seawall-test")
        assert not os.get_inheritable(fd)
        os.write(fd, b"words")
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
        assert os.pread(fd, 9, 0) == b"words"
        with pytest.raises(PermissionError):
            os.write(fd, b"more")
    finally:
        os.close(fd)


def test_a_refusal_is_the_kernels() -> None:
    with pytest.raises(OSError, match="Invalid") as refused:
        memory_file._by_number("x" * 300, MFD_CLOEXEC)
    assert refused.value.errno == errno.EINVAL
