"""A device program of one's own on a cgroup of version 2, as a runtime attaches it."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

from seawall.host.device_access.bpf_programs import Bpf, attribute_of

LOAD, ATTACH, DETACH = 5, 8, 9
CGROUP_DEVICE_PROGRAM, CGROUP_DEVICE_ATTACH = 15, 6
ALLOW_MULTI = 2
ALLOW = bytes.fromhex("b7000000010000009500000000000000")
"""``r0 = 1; exit``."""
DENY = bytes.fromhex("b7000000000000009500000000000000")


def v2_mount() -> Path | None:
    """Where version 2 is mounted."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if " - cgroup2 " in line:
            return Path(line.split()[4])
    return None


def missing() -> str | None:
    """Why no program can be attached here, and what would help."""
    if os.geteuid():
        return "a cgroup and bpf(2) need root: sudo make test-system"
    home = v2_mount()
    if home is None:
        return "cgroup version 2 is not mounted: mount -t cgroup2 cgroup2 /mnt"
    if not os.access(home, os.W_OK):
        return f"{home} is read-only: run in a container with --privileged"
    try:
        os.close(load(ALLOW))
    except OSError as error:
        return f"bpf(2) loads no device program here: {error.strerror}; needs CAP_SYS_ADMIN"
    return None


def load(instructions: bytes) -> int:
    """The descriptor of a program."""
    code = ctypes.create_string_buffer(instructions)
    licence = ctypes.create_string_buffer(b"GPL")
    attribute = attribute_of(
        "=IIQQ", CGROUP_DEVICE_PROGRAM, len(instructions) // 8,
        ctypes.addressof(code), ctypes.addressof(licence),
    )  # fmt: skip
    return Bpf().call(LOAD, attribute)


@contextlib.contextmanager
def attached(folder: Path, *programs: bytes) -> Iterator[None]:
    """``programs`` decide about devices in the cgroup until the end of the block."""
    target = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    held: list[int] = []
    try:
        for instructions in programs:
            fd = load(instructions)
            fields = (target, fd, CGROUP_DEVICE_ATTACH, ALLOW_MULTI)
            Bpf().call(ATTACH, attribute_of("=IIII", *fields))
            held.append(fd)
        yield
    finally:
        for fd in held:
            Bpf().call(DETACH, attribute_of("=III", target, fd, CGROUP_DEVICE_ATTACH))
            os.close(fd)
        os.close(target)


@contextlib.contextmanager
def v2_cgroup(name: str) -> Iterator[Path]:
    """A cgroup of its own; whoever is in it must have ended before."""
    home = v2_mount()
    assert home
    folder = home / f"{name}-{os.getpid()}"
    folder.mkdir()
    try:
        yield folder
    finally:
        folder.rmdir()
