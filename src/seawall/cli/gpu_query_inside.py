# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query WORKLOAD``: what the driver tells a container, by the host's libraries.

The proof of a failing call is the container's own table: the first layer that disagrees.
"""

import errno
import re

from seawall.accounts.devices.classes import NVIDIA
from seawall.accounts.devices.container_processes import eldest
from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import ContainerDevices, DeviceRow
from seawall.accounts.devices.own_view import ClassPromise, nvidia_refusals, paths_to_try
from seawall.accounts.workloads import Workload, Workloads
from seawall.cli.named_workload import lookup_problem, named_workload
from seawall.findings.blindness import unread_rows
from seawall.host.host import Unread
from seawall.problems import UsageProblem
from seawall.readings import device_access, device_nodes, gpu_query_inside
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_access import AccessTarget, Tried
from seawall.readings.gpu_query_inside import Inside
from seawall.readings.kernel import Kernel
from seawall.readings.process import Process, Processes
from seawall.sources.source import Source
from seawall.views.gpu_query_page import AskedAs, QueryPage

_PID = re.compile(r"pid:([0-9]{1,10})")
_NEEDED = ("SYS_ADMIN", "SYS_PTRACE")
_SECONDS_LEFT = 4.0
"""Of --timeout, for the table that explains a failure."""


def page_inside(source: Source, name: str) -> QueryPage:
    """The whole answer; UsageProblem where nobody can be asked."""
    _refuse_where_it_cannot_be(source, name)
    workload = _one_container(source, named_workload(source, name))
    process = _process_of(source, workload, name)
    left = source.live.seconds_left() if source.live else 0.0
    seconds = max(1.0, left - _SECONDS_LEFT)
    host = source.first.host
    inside = gpu_query_inside.ask(host, process.pid, process.starttime_ticks, seconds)
    query = inside.query if isinstance(inside, Inside) else inside
    refused: tuple[str, ...] = ()
    diagnosis = None
    if not isinstance(query, Unread) and query.failed:
        found = [one for one in _tables(source, workload) if any(_refused(one))]
        refused = tuple(words for one in found for words in _rows(one))
        refused = refused or _of_a_try(source, process)
        diagnosis = next((one.diagnosis for one in found), None)
    return QueryPage(
        query=query,
        refused=refused,
        diagnosis=diagnosis,
        unseen=tuple(unread_rows([source.first])),
        asked_as=AskedAs(workload, process.pid, inside if isinstance(inside, Inside) else None),
    )


def _refuse_where_it_cannot_be(source: Source, name: str) -> None:
    if source.live is None:
        raise UsageProblem(
            "a bundle or a tree of files has no driver to be asked; what it holds of this "
            f"workload's devices: seawall gpu {name} with the same source"
        )
    kernel = source.first.get(Kernel)
    may = kernel.reader_capabilities if isinstance(kernel, Kernel) else None
    lacking = [one for one in _NEEDED if may is not None and one not in may]
    if lacking:
        raise UsageProblem(
            f"gpu query WORKLOAD needs root (CAP_{', CAP_'.join(lacking)}): it asks the driver in "
            "the workload's cgroup and namespaces; without root: run seawall gpu query in it"
        )


def _one_container(source: Source, workload: Workload) -> Workload:
    """A pod's only one, or itself."""
    if workload.kind != "pod":
        return workload
    workloads = source.first.get(Workloads)
    if isinstance(workloads, Unread):
        raise lookup_problem(workloads)
    found = [
        one
        for path, one in sorted(workloads.by_cgroup.items())
        if one.kind == "container" and not one.is_sandbox and path.startswith(workload.cgroup + "/")
    ]
    if len(found) == 1:
        return found[0]
    names = ", ".join(one.name for one in found[:8]) or "none"
    raise UsageProblem(f"{workload.name} is a pod; name one of its containers: {names}")


def _process_of(source: Source, workload: Workload, name: str) -> Process:
    workloads, processes = source.first.get(Workloads), source.first.get(Processes)
    if isinstance(workloads, Unread):
        raise lookup_problem(workloads)
    if isinstance(processes, Unread):
        raise lookup_problem(processes)
    named = _PID.fullmatch(name)
    found = processes.by_pid.get(int(named[1])) if named else None
    found = found or eldest(workloads, processes).get(workload.cgroup)
    if found is None:
        raise UsageProblem(
            f"{workload.name} has no process as which the driver could be asked: it does not run"
        )
    return found


def _tables(source: Source, workload: Workload) -> list[ContainerDevices]:
    """What the five layers say of its NVIDIA devices."""
    table = source.first.get(DeviceTable)
    return [
        one
        for one in (table.containers if isinstance(table, DeviceTable) else ())
        if one.workload.cgroup == workload.cgroup and one.device_class == NVIDIA.name
    ]


def _refused(one: ContainerDevices) -> list[DeviceRow]:
    return [row for row in one.devices if row.is_needed and row.broken_at and row.errno != 0]


def _rows(one: ContainerDevices) -> list[str]:
    """The refused devices, those of one reason together."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for row in _refused(one):
        code = "not tried" if row.errno is None else errno.errorcode.get(row.errno, str(row.errno))
        why = row.layers[row.broken_at].why if row.broken_at else ""
        reason = f"the layer that refuses it is {row.broken_at}: {why.removeprefix(f'{code}: ')}"
        by_reason.setdefault((code, reason), []).append(row.path)
    return [f"{', '.join(paths)}: {code}; {why}" for (code, why), paths in by_reason.items()]


def _of_a_try(source: Source, process: Process) -> tuple[str, ...]:
    """Of a workload that nobody promised a device: NVIDIA's nodes, as it may use them."""

    def try_there(promise: ClassPromise) -> list[Tried]:
        nodes = device_nodes.ask(source.first.host, (process.pid,)).get(process.pid)
        paths = paths_to_try(promise, () if nodes is None or isinstance(nodes, Unread) else nodes)
        target = AccessTarget(process.pid, process.starttime_ticks, paths)
        access = device_access.ask(source.first.host, [target]).get(process.pid)
        return [] if access is None else [one for path in paths if (one := access.tried.get(path))]

    return nvidia_refusals(source.first.get(CharDevices), try_there)
