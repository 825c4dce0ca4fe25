# SPDX-License-Identifier: Apache-2.0
"""Programs that decide about devices: which are attached to a cgroup, and what they say.

bpf(2): BPF_PROG_QUERY for BPF_CGROUP_DEVICE (4.15+), BPF_PROG_GET_FD_BY_ID and
BPF_OBJ_GET_INFO_BY_FD (4.13+); include/uapi/linux/bpf.h.  A query needs CAP_NET_ADMIN, a program
CAP_SYS_ADMIN.  The attribute is given in full size: since 6.17 a query writes its last field
whatever size the caller told.  Instructions are those that run (translated); for this type of
program the verifier changes little in them.  load_time is CLOCK_BOOTTIME in ns (4.15+); the
kernel fills as much of the struct as it knows and leaves the rest zero.
"""

import ctypes
import errno
import json
import os
import struct
from typing import Final

from seawall.host.device_access.apart import problem, problem_of
from seawall.host.host import JSON

# Of 64-bit little-endian machines: whoever reads the instructions takes them for such.
_CALL_NUMBERS: Final = {
    "x86_64": 321, "aarch64": 280, "riscv64": 280, "loongarch64": 280, "ppc64le": 361,
}  # fmt: skip
_POINTER_BYTES: Final = 8
_GET_FD_BY_ID: Final = 13
_INFO_BY_FD: Final = 15
_QUERY: Final = 16
_CGROUP_DEVICE: Final = 6
_ATTRIBUTE_BYTES: Final = 256  # more than any kernel has yet; the rest has to be zero
_INFO_BYTES: Final = 256
_INFO: Final = struct.Struct("=20xI8xQQ")  # xlated_prog_len, xlated_prog_insns, load_time
_ATTACHED_MOST: Final = 64  # BPF_CGROUP_MAX_PROGS
_FOLDERS_MOST: Final = 8192
_PROGRAMS_MOST: Final = 4096
_INSTRUCTION_BYTES_MOST: Final = 64 << 10
_NEEDS: Final = "bpf(2) refuses it: needs CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN"


def device_programs(argument: str) -> JSON:
    """{"folders": {folder: [id, ...]}, "programs": {id: hex of instructions},
    "loaded": {id: ns since boot}}.

    argument: JSON, {"folders": [a cgroup of version 2, ...]}.  ``{"problem": [why, words]}``
    stands for what could not be told.
    """
    folders = [str(folder) for folder in json.loads(argument)["folders"]][:_FOLDERS_MOST]
    bpf = Bpf()
    if not bpf.is_known:
        words = f"the number of bpf(2) is not known on this machine ({os.uname().machine})"
        unknown = {folder: problem("failed", words) for folder in folders}
        return {"folders": dict(unknown), "programs": {}, "loaded": {}}
    attached: dict[str, JSON] = {}
    ids: set[int] = set()
    for folder in folders:
        try:
            found = bpf.attached(folder)
            ids.update(found)
            attached[folder] = list[JSON](found)
        except OSError as error:
            attached[folder] = _problem(error.errno or errno.EIO)
    programs: dict[str, JSON] = {}
    loaded: dict[str, JSON] = {}
    for number in sorted(ids)[:_PROGRAMS_MOST]:
        try:
            code, since = bpf.program(number)
            programs[str(number)] = code.hex()
            loaded[str(number)] = since
        except OSError as error:
            programs[str(number)] = _problem(error.errno or errno.EIO)
    return {"folders": attached, "programs": programs, "loaded": loaded}


def _problem(code: int) -> JSON:
    if code in (errno.EPERM, errno.EACCES):
        return problem("refused", _NEEDS)
    if code == errno.EBADF:
        return problem("absent", "not a cgroup of version 2")
    if code in (errno.EINVAL, errno.ENOSYS):
        return problem("absent", "this kernel has no device programs (CONFIG_CGROUP_BPF, 4.15)")
    if code == errno.ENOSPC:
        return problem("too_big", "more programs than a cgroup can have")
    return problem_of(code)


class Bpf:
    """bpf(2), by its number: the C library has no wrapper for it."""

    def __init__(self) -> None:
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._syscall.restype = ctypes.c_long
        # A 32-bit program on a 64-bit kernel is told the kernel's name and has other numbers.
        is_wide = ctypes.sizeof(ctypes.c_void_p) == _POINTER_BYTES
        self._number = _CALL_NUMBERS.get(os.uname().machine) if is_wide else None

    @property
    def is_known(self) -> bool:
        """Whether this machine's number of the call is known."""
        return self._number is not None

    def call(self, command: int, attribute: ctypes.Array[ctypes.c_char]) -> int:
        """The call's result; OSError."""
        if self._number is None:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        done: int = self._syscall(
            ctypes.c_long(self._number), ctypes.c_long(command), attribute,
            ctypes.c_ulong(_ATTRIBUTE_BYTES),
        )  # fmt: skip
        if done < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return done

    def attached(self, folder: str) -> list[int]:
        """Ids of the device programs of this cgroup itself, in the order in which they run."""
        ids = (ctypes.c_uint32 * _ATTACHED_MOST)()
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            attribute = attribute_of(
                "=IIIIQI", fd, _CGROUP_DEVICE, 0, 0, ctypes.addressof(ids), _ATTACHED_MOST
            )
            self.call(_QUERY, attribute)
        finally:
            os.close(fd)
        count = struct.unpack_from("=24xI", attribute)[0]
        return list(ids[: min(count, _ATTACHED_MOST)])

    def program(self, number: int) -> tuple[bytes, int]:
        """Of the program with this id: 8 bytes for each instruction (struct bpf_insn), and when
        it was loaded, ns since boot.
        """
        fd = self.call(_GET_FD_BY_ID, attribute_of("=III", number, 0, 0))
        try:
            size = self._info(fd, 0, 0)[0]
            if size > _INSTRUCTION_BYTES_MOST:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
            room = ctypes.create_string_buffer(max(1, size))
            told, address, since = self._info(fd, size, ctypes.addressof(room))
        finally:
            os.close(fd)
        if not size or not address:  # it may be known, but not read
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))
        return room.raw[: min(size, told)], since

    def _info(self, fd: int, size: int, address: int) -> tuple[int, int, int]:
        """(length of the instructions, where they were written; 0 when they were kept back, when
        it was loaded).
        """
        info = ctypes.create_string_buffer(_INFO_BYTES)
        _INFO.pack_into(info, 0, size, address, 0)
        self.call(_INFO_BY_FD, attribute_of("=IIQ", fd, _INFO_BYTES, ctypes.addressof(info)))
        length, written, since = _INFO.unpack_from(info)
        return length, written, since


def attribute_of(layout: str, *fields: int) -> ctypes.Array[ctypes.c_char]:
    """``union bpf_attr``, zero behind its fields."""
    return ctypes.create_string_buffer(struct.pack(layout, *fields), _ATTRIBUTE_BYTES)
