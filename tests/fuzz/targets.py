"""The ten parsers most exposed to hostile bytes, by who writes what they read.

A tenant: configurations of containers, names of processes, mounts, lines of the kernel's log.
A runtime that a tenant has taken over: CRI's messages.  The kernel on a tenant's
behalf: netlink, the ring buffer.  Whoever sends evidence: bundles and black boxes.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from seawall.blackbox.reader import Box
from seawall.formats import protobuf_wire
from seawall.host.bundle import open_bundle
from seawall.host.packet_rings import diag
from seawall.host.page_trace import ring_pages
from seawall.problems import BundleProblem, ParseProblem
from seawall.readings import container_names, kernel_log, mountinfo, oci_devices, process

CORPUS: Final = Path(__file__).parent / "corpus"
INPUT_MOST_BYTES: Final = 16 << 10


class FuzzTarget(NamedTuple):
    """``run`` may raise ``problems`` and nothing else."""

    run: Callable[[bytes], object]
    problems: tuple[type[BaseException], ...]


def _by_path(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """For readers that take the path of a file, which is in memory here."""

    def run(data: bytes) -> object:
        fd = os.memfd_create("fuzz")
        try:
            os.write(fd, data)
            return read(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)

    return run


def _box(path: str) -> object:
    box = Box.open(path)
    try:
        return [box.frame(head) for head in box.heads]
    finally:
        box.close()


TARGETS: Final = {
    "container_config": FuzzTarget(container_names.parse_config, (ParseProblem,)),
    "oci_devices": FuzzTarget(oci_devices.parse_config, (ParseProblem,)),
    "cri_message": FuzzTarget(lambda data: list(protobuf_wire.fields(data)), (ParseProblem,)),
    "netlink_replies": FuzzTarget(diag.parse_replies, (OSError,)),
    "ring_page": FuzzTarget(ring_pages.walk, (ParseProblem,)),
    "kernel_log": FuzzTarget(kernel_log.parse, ()),
    "process_stat": FuzzTarget(process.parse, (ParseProblem,)),
    "mountinfo": FuzzTarget(mountinfo.parse, (ParseProblem,)),
    "bundle": FuzzTarget(_by_path(open_bundle), (BundleProblem,)),
    "black_box": FuzzTarget(_by_path(_box), (BundleProblem,)),
}  # fmt: skip


def tried(target: FuzzTarget, data: bytes) -> None:
    """What escapes is a finding."""
    try:
        target.run(data)
    except target.problems:
        return
