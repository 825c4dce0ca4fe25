# SPDX-License-Identifier: Apache-2.0
"""Probes that look into other processes: asked through the expendable child.

A new one is a function of its argument, in a module of its own, and a row in the table.  The
modules are imported in the child, when they are asked: on a thrashing node each file counts.
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from seawall.host.host import JSON

if TYPE_CHECKING:
    from seawall.host.rooted import Rooted


class SlowProbe(NamedTuple):
    """``answer`` may hang, and may raise OSError when nothing may be asked at all."""

    answer: Callable[[str], JSON]
    deadline_seconds: float


def _pipes(_: str) -> JSON:
    from seawall.host.pipes import data_in_pipes  # noqa: PLC0415 - see above

    return data_in_pipes(os.sysconf("SC_PAGE_SIZE"))


def _descriptors(_: str) -> JSON:
    from seawall.host.descriptors import open_descriptors  # noqa: PLC0415 - see above

    return open_descriptors()


def _task_stacks(_: str) -> JSON:
    from seawall.host.task_stacks import task_stacks  # noqa: PLC0415 - see above

    return task_stacks()


def _driver_files(_: str) -> JSON:
    from seawall.host.driver_files import driver_files  # noqa: PLC0415 - see above

    return driver_files()


def _driver_mappings(argument: str) -> JSON:
    from seawall.host.driver_mappings import driver_mappings  # noqa: PLC0415 - see above

    return driver_mappings(argument)


def _device_nodes(argument: str) -> JSON:
    from seawall.host.device_access.nodes import device_nodes  # noqa: PLC0415 - see above

    return device_nodes(argument)


def _device_access(argument: str) -> JSON:
    from seawall.host.device_access.trying import device_access  # noqa: PLC0415 - see above

    return device_access(argument)


def _device_programs(argument: str) -> JSON:
    from seawall.host.device_access.bpf_programs import device_programs  # noqa: PLC0415 - see above

    return device_programs(argument)


def _runtime_versions(_: str) -> JSON:
    from seawall.host.runtime_versions import runtime_versions  # noqa: PLC0415 - see above

    return runtime_versions()


def _device_log(argument: str) -> JSON:
    from seawall.host.device_log.device_log_probe import device_log  # noqa: PLC0415 - see above

    return device_log(argument)


def _event_log(argument: str) -> JSON:
    from seawall.host.event_log.probe import event_log  # noqa: PLC0415 - see above

    return event_log(argument)


def _cri(argument: str) -> JSON:
    from seawall.host.cri import cri  # noqa: PLC0415 - see above

    return cri(argument)


def _pod_resources(_: str) -> JSON:
    from seawall.host.pod_resources import pod_resources  # noqa: PLC0415 - see above

    return pod_resources()


def _nvml(argument: str) -> JSON:
    from seawall.host.nvml import devices  # noqa: PLC0415 - see above

    return devices(argument)


def _gpu_query(argument: str) -> JSON:
    from seawall.host.gpu_query import gpu_query  # noqa: PLC0415 - see above

    return gpu_query(argument)


def _gpu_query_inside(argument: str) -> JSON:
    from seawall.host.gpu_inside.asking import gpu_query_inside  # noqa: PLC0415 - see above

    return gpu_query_inside(argument)


def _page_census(argument: str) -> JSON:
    from seawall.host.page_census.page_census_probe import page_census  # noqa: PLC0415 - see above

    return page_census(argument)


def _page_trace(argument: str) -> JSON:
    from seawall.host.page_trace.page_trace_probe import page_trace  # noqa: PLC0415 - see above

    return page_trace(argument)


def _packet_rings(_: str) -> JSON:
    from seawall.host.packet_rings.ring_sockets import packet_rings  # noqa: PLC0415 - see above

    return packet_rings()


def _socket_queues(argument: str) -> JSON:
    from seawall.host.socket_queue_probe import socket_queues  # noqa: PLC0415 - see above

    return socket_queues(argument)


def _packet_ring_maps(argument: str) -> JSON:
    from seawall.host.packet_rings.maps import ring_maps  # noqa: PLC0415 - see above

    return ring_maps(argument)


def _sysrq(command: str) -> JSON:
    from seawall.host.sysrq import sysrq  # noqa: PLC0415 - see above

    return sysrq(command)


SLOW_PROBES: Final = {
    "page_census": SlowProbe(_page_census, 3700.0),  # it ends itself when its time is over
    "page_trace": SlowProbe(_page_trace, 700.0),  # it ends itself when its time is over
    "packet_ring_maps": SlowProbe(_packet_ring_maps, 1.0),
    "packet_rings": SlowProbe(_packet_rings, 1.8),
    "pipes": SlowProbe(_pipes, 0.4),
    "socket_queues": SlowProbe(_socket_queues, 2.4),
    "cri": SlowProbe(_cri, 2.5),  # it ends itself when its time is over
    "pod_resources": SlowProbe(_pod_resources, 1.5),  # likewise
    "descriptors": SlowProbe(_descriptors, 0.6),
    "device_access": SlowProbe(_device_access, 3.5),  # it ends itself when its time is over
    "device_log": SlowProbe(_device_log, 5.0),  # likewise
    "event_log": SlowProbe(_event_log, 2.5),  # likewise
    "device_nodes": SlowProbe(_device_nodes, 2.5),  # likewise
    "device_programs": SlowProbe(_device_programs, 2.0),
    "driver_files": SlowProbe(_driver_files, 2.0),
    "driver_mappings": SlowProbe(_driver_mappings, 0.8),
    "runtime_versions": SlowProbe(_runtime_versions, 2.4),  # it ends itself when its time is over
    "nvml": SlowProbe(_nvml, 3.0),
    "gpu_query": SlowProbe(_gpu_query, 15.0),  # a device that sleeps takes seconds to wake
    "gpu_query_inside": SlowProbe(_gpu_query_inside, 18.0),  # it ends itself when its time is over
    "task_stacks": SlowProbe(_task_stacks, 5.0),
    "sysrq": SlowProbe(_sysrq, 20.0),  # a CPU that does not answer is waited for, 10 s
}
OF_TREES: Final = frozenset({"device_log", "device_nodes", "event_log"})
"""Those that only read files: a tree of files answers them too."""


def answer_of(probe: str, argument: str, rooted: "Rooted | None") -> JSON:
    """rooted: what opens below another root than ``/``."""
    if rooted is None:
        return SLOW_PROBES[probe].answer(argument)
    if probe == "device_nodes":
        from seawall.host.device_access.nodes import nodes_of_tree  # noqa: PLC0415 - see above

        return nodes_of_tree(argument, rooted.open)
    if probe == "event_log":
        from seawall.host.event_log.probe import event_log  # noqa: PLC0415 - see above

        return event_log(argument, rooted.open)
    from seawall.host.device_log.device_log_probe import device_log  # noqa: PLC0415 - see above

    return device_log(argument, rooted.open)
