# SPDX-License-Identifier: Apache-2.0
"""Hung tasks, failed allocations, Xids and starts of the machine, as the kernel tells them."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.log_episodes.episode import episode, moments_of, runs, span_seconds
from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.readings.event_log.event_log import EventLog
from seawall.readings.event_log.log_line import NO_MOMENT, LogLine
from seawall.readings.event_log.sign import Sign
from seawall.words import counted, duration, first, size

_PAGE: Final = 4096
_NEAR_LINES: Final = 60
"""A call trace and its Mem-Info stand so near below their first line."""
_XIDS: Final = {
    "31": "a program touched a GPU address that is not mapped, as a rule its own fault",
    "43": "a program's channel was stopped, as a rule by the program's own fault",
    "45": "a program's channels were taken down, mostly after another fault",
    "13": "a program's graphics or compute engine faulted, as a rule its own fault",
    "48": "an uncorrectable (double bit) error of the GPU's memory",
    "63": "a row of the GPU's memory was remapped or retired",
    "64": "the GPU could not remap or retire a row of its memory",
    "74": "an NVLink error",
    "79": "the GPU has fallen off the bus",
    "92": "many correctable errors of the GPU's memory",
    "94": "an uncorrectable error of the GPU's memory that was contained: the program on it "
    "lost its work, others go on",
    "95": "an uncorrectable error of the GPU's memory that was not contained",
    "119": "the GPU's own processor (GSP) does not answer",
    "120": "the GPU's own processor (GSP) failed",
}
_XIDS_APART: Final = 600.0
_PLAIN_NAME: Final = re.compile(r"[^<>']+\Z")


def hung_tasks(log: EventLog) -> Iterator[RecentEvent]:
    """One event for tasks that hang at the same time; told again it is the same task."""
    told = [sign for sign in log.signs if sign.what == "hung_task"]
    for run in runs(told, 600.0):
        tasks: dict[tuple[str, str], list[Sign]] = {}
        for sign in run:
            tasks.setdefault((sign.words["comm"], sign.words["pid"]), []).append(sign)
        longest = max(int(sign.words["seconds"]) for sign in run)
        names = [comm for comm, _ in tasks]
        details = [_task_words(comm, pid, signs) for (comm, pid), signs in tasks.items()]
        details.append(
            "they wait inside the kernel and cannot be interrupted; without a stack the lines do "
            "not say for what; whether it is over is not told"
        )
        began = int(run[0].words["seconds"])
        yield episode(
            "hung_task", moments_of(run),
            f"{counted(len(tasks), 'task')} hung for at least {longest} s: {first(names, 3)}",
            details, count=len(tasks), began=float(began), more="seawall stacks",
        )  # fmt: skip
    for run in runs((s for s in log.signs if s.what == "lockup"), 600.0):
        words = run[-1].words
        who = f" in {words['comm']}" if words["comm"] else ""
        cpus = {sign.words["cpu"] for sign in run}
        yield episode(
            "hung_task", moments_of(run),
            f"CPU {first(sorted(cpus), 3)} stuck for {words['seconds']} s{who}",
            ["a processor did not leave the kernel: the lines do not say that memory was short"],
            count=len(cpus), more="seawall stacks",
        )  # fmt: skip


def _task_words(comm: str, pid: str, signs: Sequence[Sign]) -> str:
    last = signs[-1]
    words = f"{comm} ({pid})"
    boot = signs[0].line.moment.boot_seconds
    if boot is not None:
        words += f", stuck since about {boot - int(signs[0].words['seconds']):.0f} s after boot"
    words += f", at least {last.words['seconds']} s when last told"
    return words + (f"; told {len(signs)} times" if len(signs) > 1 else "")


def failed_allocations(log: EventLog) -> Iterator[RecentEvent]:
    """A request of the kernel's own that got nothing; nobody is killed by it."""
    told = [sign for sign in log.signs if sign.what == "allocation_failure"]
    for run in runs(told, 10.0):
        words = run[0].words
        near = [s for s in log.signs if 0 < s.line.number - run[0].line.number <= _NEAR_LINES]
        order = int(words.get("order") or 0)
        asked = size((1 << min(order, 30)) * _PAGE)
        work = next((s.words["work"] for s in near if s.what == "workqueue"), "")
        who = words.get("comm") or "SLUB"
        sentence = f"the kernel found no {asked}"
        sentence += " in one piece" if order else ""
        sentence += f" for {work or who}"
        yield episode(
            "allocation_failure", moments_of(run), sentence,
            _failure_details(run, order, work, near), count=len(run),
        )  # fmt: skip


def _failure_details(
    run: Sequence[Sign], order: int, work: str, near: Sequence[Sign]
) -> Iterator[str]:
    words = run[0].words
    comm = words.get("comm") or ""
    times = counted(len(run), "request") + " failed"
    if comm:
        yield f"{times}, of {comm}" + (f" (a kernel worker: {work})" if work else "")
    else:
        yield f"{times}, of a slab cache"
    if order:
        yield f"order {order}: {1 << min(order, 30)} pages in one piece, 4 KiB each as a rule"
    gfp = words.get("gfp") or ""
    flags = gfp.split("|")
    if "GFP_ATOMIC" in flags:
        yield "GFP_ATOMIC: the request could not wait for memory"
    elif any(flag in flags for flag in ("GFP_KERNEL", "GFP_USER", "GFP_KERNEL_ACCOUNT")):
        tried = ", and compaction was tried" if any(s.what == "compaction" for s in near) else ""
        yield f"{gfp}: the request could wait{tried}"
    if order:
        yield "memory was in pieces too small; a device or a feature can be missing after it"
    if not any(s.what == "mem_info" for s in near):
        yield "no Mem-Info is in the log: how much was free is not told"
    yield "nobody was killed by this"


def driver_requests(log: EventLog) -> Iterator[RecentEvent]:
    """NV_ERR_NO_MEMORY: the driver asked the host for memory and got none."""
    whats = ("driver_no_memory", "driver_no_sysmem")
    told = [sign for sign in log.signs if sign.what in whats]
    requests = list(runs(told, 1.0))
    if not requests:
        return
    signs = [sign for request in requests for sign in request]
    is_system = any(sign.what == "driver_no_sysmem" for sign in signs)
    what = "system memory (host RAM)" if is_system else "memory"
    details = [
        f"{request[0].line.moment.text or 'no time'}: one request, {counted(len(request), 'line')}"
        for request in requests[:10]
    ]
    details += [
        f"the driver asked for {what} and got NV_ERR_NO_MEMORY; who asked gets an error",
        "which process, and whether the host was short, is not in these lines; nobody was killed",
    ]
    yield episode(
        "allocation_failure", moments_of(signs),
        f"NVIDIA driver got no {'system ' if is_system else ''}memory, "
        f"{counted(len(requests), 'request')}",
        details, count=len(requests), more="seawall gpu",
    )  # fmt: skip


def xids(log: EventLog) -> Iterator[RecentEvent]:
    """One event for one Xid of one GPU that comes again within ten minutes: a storm is one."""
    by_fault: dict[tuple[str, str], list[Sign]] = {}
    for sign in log.signs:
        if sign.what == "xid":
            by_fault.setdefault((sign.words["gpu"], sign.words["xid"]), []).append(sign)
    for (gpu, xid), signs in by_fault.items():
        for run in runs(signs, _XIDS_APART):
            yield _xid(gpu, xid, run)


def _xid(gpu: str, xid: str, run: Sequence[Sign]) -> RecentEvent:
    names = sorted({s.words["comm"] for s in run if _PLAIN_NAME.match(s.words["comm"])})
    meaning = _XIDS.get(xid, "see NVIDIA's list of Xids")
    often = f", {len(run)} times" if len(run) > 1 else ""
    details = [f"Xid {xid}: {meaning}"]
    who = sorted(
        {f"{s.words['comm']} ({s.words['pid']})" for s in run if _PLAIN_NAME.match(s.words["comm"])}
    )
    details.append(f"program: {first(who, 4)}" if who else "which program it was is not told")
    rest = run[-1].words["rest"]
    if "RST: No" in rest:
        details.append("the line asks for no reset (RST: No)")
    details.append("nothing in it says that a memory ran out, or that the kernel killed anybody")
    return episode(
        "device_fault", moments_of(run),
        f"Xid {xid} on GPU {gpu}{often}" + (f", {first(names, 2)}" if names else ""),
        details, count=len(run), more="seawall gpu",
    )  # fmt: skip


_NO_MARK: Final = 200
"""Lines of one start stand so near."""


def starts(log: EventLog) -> Iterator[RecentEvent]:
    """A start of the machine without a shutdown before it; a clean one is no event."""
    last_number = -_NO_MARK - 1
    last: LogLine | None = None
    for sign in log.signs:
        if sign.what not in ("boot", "boot_likely"):
            continue
        passed = sign.line.moment.after(last.moment) if last else None
        is_same = sign.line.number - last_number <= _NO_MARK and (passed is None or passed < 120)
        last_number, last = sign.line.number, sign.line
        before = log.before_boot.get(sign.line.number)
        if is_same or before is None:
            continue  # the log begins with this start, or it is the same one
        if any(_is_shutdown_before(other, sign) for other in log.signs):
            continue
        yield _start(_dated(log, sign), before)


def _dated(log: EventLog, mark: Sign) -> Sign:
    """Journalctl's own mark has no time: the next line of the same start has."""
    if mark.line.moment != NO_MOMENT:
        return mark
    for sign in log.signs:
        if sign.what == "boot" and 0 < sign.line.number - mark.line.number <= _NO_MARK:
            return sign
    return mark


def _is_shutdown_before(other: Sign, boot: Sign) -> bool:
    return other.what == "shutdown" and 0 < boot.line.number - other.line.number <= 400


def _start(sign: Sign, before: LogLine) -> RecentEvent:
    gap = span_seconds(before.moment, sign.line.moment)
    silence = "" if gap is None else f", {_minutes(gap)} after its last line"
    is_likely = sign.what == "boot_likely"
    details = [
        f"last line of the boot before: {before.moment.text}; first of the next: "
        f"{sign.line.moment.text}" + ("" if gap is None else f"; {_minutes(gap)} of nothing"),
        "no shutdown is in the lines before it: power, a reset, a panic or a watchdog",
        "the cause is not in these lines: look into /sys/fs/pstore, the BMC's log, the black box",
    ]
    if is_likely:
        details.append(
            f"likely, not certain: {sign.line.program} runs at boot, but no line of the kernel's "
            "start is in the log"
        )
    return episode(
        "unclean_reboot", [sign.line.moment],
        f"{'likely ' if is_likely else ''}started without a shutdown{silence}", details,
        more="ls /sys/fs/pstore",
    )  # fmt: skip


def _minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return duration(seconds)
