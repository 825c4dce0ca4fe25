# SPDX-License-Identifier: Apache-2.0
"""``seawall gpu query`` as text: how many devices, what failed and why, then each device."""

from collections.abc import Iterator, Sequence

from seawall.accounts.devices.layers import Diagnosis
from seawall.host.host import Unread
from seawall.readings.gpu_query import NOT_THERE, GpuQuery, Library
from seawall.views.gpu_query_page import AskedAs, JoinedDevice, QueryPage
from seawall.views.gpu_query_words import (
    RUNTIME_LIMIT,
    ExplainedFailure,
    compute_mode,
    cuda_words,
    differing,
)
from seawall.views.terminal import Console
from seawall.words import size

_INDENT = "          "


def lines(page: QueryPage, paper: Console) -> Iterator[str]:
    """Everything between the heading and "Could not see"."""
    query = page.query
    if page.asked_as is not None:
        yield from _as_whom(page.asked_as, paper)
    if isinstance(query, Unread):
        yield from paper.wrap(_no_answer(query))
        return
    yield from paper.wrap(_summary(query, page))
    for explained in page.explained():
        yield from _explained(explained, paper)
    if page.diagnosis is not None:
        yield from _diagnosis(page.diagnosis, paper)
    if own := page.own_words():
        yield ""
        yield from paper.wrap(f"{own[0].upper()}{own[1:]}.")
    yield from _missing([query.libraries[name] for name in ("nvml", "cuda")], paper)
    yield from _versions(query, paper)
    for device in page.devices():
        yield from _device(device, paper)


def _as_whom(asked: AskedAs, paper: Console) -> Iterator[str]:
    """The first line: whose cgroup, nodes and ids these are, and whose libraries."""
    uid = asked.inside.uid if asked.inside else None
    who = f"pid {asked.pid}" if uid is None else f"pid {asked.pid}, uid {uid}"
    words = (
        f"As {asked.workload.name} ({who}): its cgroup, namespaces and rights, this host's "
        "libraries."
    )
    yield from paper.wrap(words)
    for pid in asked.inside.left_behind if asked.inside else ():
        words = f"LEFT BEHIND: pid {pid} of ours: it was killed, and the kernel does not let go."
        for line in paper.wrap(words):
            yield paper.paint(line, "critical")


def _no_answer(unread: Unread) -> str:
    if unread.why == "no_answer":
        return (
            "The driver did not answer in time: a library waits in the kernel. `seawall stacks` "
            "shows where; Xid lines in dmesg say what a device complained of."
        )
    return f"The driver could not be asked: {unread.detail or unread.why}."


def _summary(query: GpuQuery, page: QueryPage) -> str:
    by_nvml, by_cuda = len(query.devices), len(query.cuda_devices)
    if all(query.libraries[name].path is None for name in ("nvml", "cuda")):
        return (
            "0 devices: neither libnvidia-ml.so.1 nor libcuda.so.1 was found. This host may simply "
            "have no NVIDIA driver."
        )
    words = f"{_devices(by_cuda)} that CUDA can use, {by_nvml} that the driver manages."
    if page.explained():
        count = len(page.explained())
        words += f" {'1 call' if count == 1 else f'{count} calls'} failed:"
    elif by_cuda < by_nvml:
        hidden = query.environment.get("CUDA_VISIBLE_DEVICES")
        words += " " + (
            f"CUDA_VISIBLE_DEVICES={hidden} hides the others."
            if hidden is not None
            else "Why CUDA sees fewer is not told: MIG, or a compute mode that prohibits it."
        )
    return words


def _devices(count: int) -> str:
    return "1 device" if count == 1 else f"{count} devices"


def _explained(explained: ExplainedFailure, paper: Console) -> Iterator[str]:
    yield ""
    code = "" if explained.code is None else f" {explained.code}"
    words = f"{explained.call}{code}: {explained.name}"
    for line in paper.wrap(words, _INDENT, "FAILED    "):
        yield paper.paint(line, "critical")
    yield from paper.wrap(f"{explained.usually}.", _INDENT, "  means   ")
    proof = explained.proof or "nothing that was seen proves which it is"
    yield from paper.wrap(f"{proof}.", _INDENT, "  proof   ")


def _diagnosis(found: Diagnosis, paper: Console) -> Iterator[str]:
    """Once for all that failed: the failure mode, and what ends it."""
    yield ""
    for line in paper.wrap(found.headline.rstrip(".") + ".", _INDENT, f"{found.mode:<10}"):
        yield paper.paint(line, "bold")
    yield from paper.wrap(found.remedy, _INDENT, "  ends it ")


def _missing(libraries: Sequence[Library], paper: Console) -> Iterator[str]:
    """Where each that was not found was looked for; what the loader said where one lies."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for library in libraries:
        if library.path is None:
            places = tuple((p, w.removeprefix(f"{library.name}: ")) for p, w in library.tried)
            found.setdefault(places, []).append(library.name)
    for tried, names in found.items():
        yield ""
        yield f"Looked for {' and '.join(names)} in:"
        for place, words in tried:
            if words != NOT_THERE:
                yield from paper.wrap(f"{place}: {words}", "    ", "  ")
        empty = ", ".join(place for place, words in tried if words == NOT_THERE)
        yield from paper.wrap(empty, "    ", "  ")


def _versions(query: GpuQuery, paper: Console) -> Iterator[str]:
    if all(library.path is None for library in query.libraries.values()):
        return
    module = query.module_version
    rows = [
        ("driver", query.driver_version),
        ("kernel module", None if isinstance(module, Unread) else module),
        ("CUDA of the driver", query.cuda_version and cuda_words(query.cuda_version)),
        ("CUDA runtime", _runtime(query)),
        *((one.name, one.path) for one in query.libraries.values() if one.path),
    ]
    yield ""
    for name, words in rows:
        if words:
            yield from paper.wrap(words, " " * 22, f"  {name:<20}")
    if differing(query):
        yield from paper.wrap(differing(query), "  ", "  ")
    if query.runtime_version and query.cuda_version and query.runtime_version > query.cuda_version:
        words = RUNTIME_LIMIT.format(
            runtime=cuda_words(query.runtime_version), driver=cuda_words(query.cuda_version)
        )
        yield from paper.wrap(words, "  ", "  ")


def _runtime(query: GpuQuery) -> str:
    if query.runtime_version is not None:
        return cuda_words(query.runtime_version)
    if not query.libraries["runtime"].tried:
        return "not asked (programs bring their own)"
    return "no libcudart here (programs bring their own)"


def _device(device: JoinedDevice, paper: Console) -> Iterator[str]:
    first = device.nvml or device.cuda
    index = 0 if first is None else first.index
    yield ""
    uuid = "" if first is None or first.uuid is None else f"  {first.uuid}"
    for line in paper.wrap(f"{device.name}{uuid}", "    ", f"{index:>2}  "):
        yield paper.paint(line, "bold")
    if device.cuda is None:
        yield "    CUDA does not see it"
    for words in _figures(device):
        yield from paper.wrap(words, "      ", "    ")
    for explained in device.failed:
        code = "" if explained.code is None else f" {explained.code}"
        words = f"{explained.call}{code}: {explained.name}: {explained.usually}"
        yield from paper.wrap(words, "      ", "    ")


def _figures(device: JoinedDevice) -> Iterator[str]:
    total, used, free = map(device.figure, ("total", "used", "free"))
    if total is not None:
        parts = "" if used is None or free is None else f": {size(used)} used, {size(free)} free"
        yield f"memory {size(total)}{parts}"
    if device.nvml is not None:
        yield from _of_nvml(device, device.nvml.bus_id or "unknown")
    if device.cuda is not None:
        yield from _of_cuda(device)


def _of_nvml(device: JoinedDevice, bus_id: str) -> Iterator[str]:
    minor = device.figure("minor")
    node = "" if minor is None else f"/dev/nvidia{minor}, "
    yield f"{node}PCI {bus_id}, compute mode {compute_mode(device.figure('compute_mode'))}"
    yield (
        f"clocks: SM {_mhz(device, 'sm_mhz')}, memory {_mhz(device, 'memory_mhz')}; power "
        f"{_watts(device.figure('power_milliwatts'))} of at most "
        f"{_watts(device.figure('power_limit_milliwatts'))}"
    )


def _of_cuda(device: JoinedDevice) -> Iterator[str]:
    yield (
        f"compute capability {_told(device, 'compute_major')}.{_told(device, 'compute_minor')}, "
        f"{_told(device, 'multiprocessors')} multiprocessors, warps of "
        f"{_told(device, 'warp_size')}; at most {_told(device, 'threads_per_block_most')} threads "
        f"a block, {_told(device, 'threads_per_multiprocessor_most')} a multiprocessor"
    )
    yield (
        f"memory bus {_told(device, 'memory_bus_bits')} bits, L2 {_size(device, 'l2_bytes')}, "
        f"constant memory {_size(device, 'constant_bytes')}"
    )


def _told(device: JoinedDevice, name: str) -> str:
    figure = device.figure(name)
    return "?" if figure is None else str(figure)


def _size(device: JoinedDevice, name: str) -> str:
    figure = device.figure(name)
    return "?" if figure is None else size(figure)


def _mhz(device: JoinedDevice, name: str) -> str:
    now, most = device.figure(name), device.figure(f"most_{name}")
    if now is None:
        return "not told"
    return f"{now} MHz" + ("" if most is None else f" of {most}")


def _watts(milliwatts: int | None) -> str:
    return "not told" if milliwatts is None else f"{milliwatts / 1000:.0f} W"
