"""Real files of several kernels (files/README.md) and machines to read them from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.case_host import CaseHost, parse_case

from seawall.host.live import LiveHost

FILES = Path(__file__).parent / "files"
UBUNTU_3_2 = "3.2-ubuntu"
EL8 = "4.18-el8"
EL8_64K = "4.18-el8-aarch64-64k"
SEED_5_10 = "5.10-seed"
DEBIAN_6_1 = "6.1-debian-qemu"
VM_6_18 = "6.18-vm"
KERNELS = (UBUNTU_3_2, EL8, EL8_64K, SEED_5_10, DEBIAN_6_1, VM_6_18)


def content(kernel: str, path: str) -> bytes:
    return (FILES / kernel / path.lstrip("/")).read_bytes()


@contextmanager
def tree(kernel: str) -> Iterator[LiveHost]:
    """The kernel's files served as ``--root`` serves them."""
    host = LiveHost(str(FILES / kernel))
    try:
        yield host
    finally:
        host.close()


@contextmanager
def this_machine() -> Iterator[LiveHost]:
    host = LiveHost()
    try:
        yield host
    finally:
        host.close()


def case(text: str) -> CaseHost:
    """A machine written down in the test itself."""
    return parse_case(text.encode()).rounds[0]
