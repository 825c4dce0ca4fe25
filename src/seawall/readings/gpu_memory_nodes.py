# SPDX-License-Identifier: Apache-2.0
"""/proc/driver/nvidia/gpus/ADDRESS/numa_status: which NUMA nodes are the memory of a GPU.

On machines whose GPU memory is part of the system's (GH200, GB200, POWER9 with V100) NVIDIA's
driver brings it online as a NUMA node without CPUs (os_numa_add_gpu_memory, os-interface.c) and
says so in this file (nv_procfs_read_numa_status, nv-procfs.c; 410 and later); with
"coherent driver-based memory management" (580 and later) there is neither node nor file.  A GPU
that is split (MIG) has a node for each part, and its file names one at most: beside such a GPU
a node without CPUs that nobody names is taken for a part of it.  On other machines it is ordinary
memory: a CXL expander's.

>>> parse(b"Node:      1\\nStatus:    online\\n")
1
>>> parse(b"Node:      -1\\nStatus:    offline\\n") is None
True
"""

from dataclasses import dataclass
from typing import Final

from seawall.host.host import Host, Unread
from seawall.problems import ParseProblem
from seawall.readings.numa import NumaNodes
from seawall.readings.reading import parse_signed, read_each_as

FOLDER: Final = "/proc/driver/nvidia/gpus"
FILE: Final = "numa_status"
_GPUS_MOST: Final = 64


@dataclass(frozen=True, slots=True)
class GpuMemoryNodes:
    """Node numbers; only nodes without CPUs that have memory are asked about."""

    numbers: tuple[int, ...]
    """A GPU's driver says that they are its memory."""
    others: tuple[int, ...]
    """No driver says so: ordinary memory, or not told (see ``unread``)."""
    unread: tuple[Unread, ...] = ()
    """What might say of ``others`` that they are a GPU's."""
    presumed: tuple[int, ...] = ()
    """No driver names them, on a machine with GPUs whose memory is such a node."""


def parse(data: bytes) -> int | None:
    """The node's number; None where the GPU has none."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        name, colon, value = line.partition(b":")
        if colon and name == b"Node":
            node = parse_signed(value.strip(), number, "a NUMA node")
            return node if node >= 0 else None
    raise ParseProblem(0, "a line 'Node: NUMBER'", data)


def read(host: Host, numa: NumaNodes) -> GpuMemoryNodes:
    """No driver is asked where every node has CPUs."""
    without = [node.number for node in numa.nodes
               if node.has_cpus is False and node.fields.get("MemTotal")]  # fmt: skip
    if not without:
        return GpuMemoryNodes((), ())
    names = host.names(FOLDER)
    if isinstance(names, Unread):
        is_told = names.why == "absent"  # no such driver, so no such memory
        return GpuMemoryNodes((), tuple(without), () if is_told else (names,))
    paths = [f"{FOLDER}/{name.rstrip('/')}/{FILE}" for name in names[:_GPUS_MOST]]
    answers = list(read_each_as(host, paths, parse))
    told = {answer for answer in answers if isinstance(answer, int)}
    unread = [answer for answer in answers
              if isinstance(answer, Unread) and answer.why != "absent"]  # fmt: skip
    numbers = tuple(number for number in without if number in told)
    rest = tuple(number for number in without if number not in told)
    if any(node.has_cpus is False and node.number in told for node in numa.nodes):
        return GpuMemoryNodes(numbers, (), tuple(unread), rest)
    return GpuMemoryNodes(numbers, rest, tuple(unread))
