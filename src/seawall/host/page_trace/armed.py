# SPDX-License-Identifier: Apache-2.0
"""The three instances of one trace: pages taken with stacks, pages freed, tasks and drivers.

They are apart because a stack belongs to every event of an instance, and because a flood of one
kind must not push out another.
"""

import os
import sys
from contextlib import suppress
from typing import Final

from seawall.host.page_trace import hist, kprobes
from seawall.host.page_trace.event_format import EventFormat, fields_of, flag_value, parse
from seawall.host.page_trace.instances import (
    SMALLEST_KIB,
    Instance,
    clear_triggers,
    disarm,
    make,
)
from seawall.host.page_trace.options import TraceOptions
from seawall.host.page_trace.proc_tasks import start_of
from seawall.host.page_trace.streams import Streams
from seawall.host.page_trace.symbols import module_symbols
from seawall.host.page_trace.tracefs import has, read_text
from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.problems import ParseProblem

ALLOC: Final = "kmem/mm_page_alloc"
FREE: Final = "kmem/mm_page_free"
FORK: Final = "task/task_newtask"
MOVE: Final = "cgroup/cgroup_attach_task"
STACK: Final = "ftrace/kernel_stack"
_LEFT_OUT: Final = ("__GFP_ACCOUNT", "__GFP_MOVABLE", "__GFP_RECLAIMABLE")
_INTERRUPTS: Final = 0x18  # common_flags: hard and soft interrupt
_BUFFER_MOST_KIB: Final = 16 << 10  # of one CPU
_BUFFERS_MOST_KIB: Final = 192 << 10  # of all CPUs of an instance
_SHARE_OF_AVAILABLE: Final = 64
_BUFFER_LEAST_KIB: Final = 128
_TASKS_KIB: Final = 128


class Armed:
    """Made by ``arm``; ``close`` removes all of it."""

    def __init__(self, root: int, options: TraceOptions) -> None:
        self.root = root
        self.options = options
        check_layout(read_text("events/header_page", root))
        self.page_format = self._format(ALLOC)
        self.stack_format = self._format(STACK)
        self.free_format = self._format(FREE)
        self.fork_format = self._format(FORK)
        self.move_format = self._format(MOVE) if has(f"events/{MOVE}", root) else None
        self.has_hist = False
        self.is_on = False
        self._step = 1
        self._sums_before = hist.Sums({}, 0)
        """What the kernel's own sums were when they were last taken off."""
        self.probes: list[kprobes.Probe] = []
        self.buffer_kib = options.buffer_kib or _chosen_kib()
        self.instances: list[Instance] = []
        self._streams: list[Streams] = []
        self._name = f"seawall-{os.getpid()}-{start_of(os.getpid()) or 0}"
        self._group = kprobes.group_name(self._name)
        self.condition = self._condition()

    def _format(self, event: str) -> EventFormat:
        try:
            return parse(read_text(f"events/{event}/format", self.root).encode())
        except FileNotFoundError as error:
            words = f"this kernel has no event {event.replace('/', ':')}"
            raise TracingProblem("absent", words, f"events/{event}") from error
        except OSError as error:
            raise TracingProblem("refused", f"{event}: {error.strerror}") from error
        except ParseProblem as error:
            raise TracingProblem("malformed", f"{event}: {error}") from error

    def _condition(self) -> str:
        """Unmovable, uncharged, in a task's own context."""
        values = [flag_value(self.page_format.print_format, name) for name in _LEFT_OUT]
        mask = sum(value for value in values if value)
        if None in values:
            raise TracingProblem("malformed", "the event does not tell what __GFP_ACCOUNT is worth")
        return f"!(gfp_flags & {mask:#x}) && !(common_flags & {_INTERRUPTS:#x})"

    def compound_flag(self) -> int:
        """What ``__GFP_COMP`` is worth here."""
        return flag_value(self.page_format.print_format, "__GFP_COMP") or 0

    def make(self) -> None:
        """All instances, with their filters, still off."""
        for kind in ("pages", "frees", "tasks"):
            self.instances.append(make(self.root, f"{self._name}-{kind}"))
        self.pages.write("options/stacktrace", "1")
        self.grow()
        if self.options.with_kprobes and has(kprobes.PROBES, self.root):
            self._add_probes()
        self._streams = [Streams(instance) for instance in self.instances]

    @property
    def pages(self) -> Instance:
        """The trace instance that records pages taken (kmem:mm_page_alloc)."""
        return self.instances[0]

    @property
    def streams(self) -> list[Streams]:
        """Of pages taken, pages freed, and tasks."""
        return self._streams

    def _add_probes(self) -> None:
        machine = os.uname().machine
        for number, driver in enumerate(self.options.drivers):
            symbols = module_symbols(driver.module)
            choices = kprobes.lines_for(driver, number, symbols, machine)
            taken = kprobes.add(self.root, self._group, choices)
            self.probes += taken

    def probe_formats(self) -> list[EventFormat]:
        """One for each probe, in the same order."""
        return [self._format(f"{self._group}/{probe.event}") for probe in self.probes]

    def filter(self, step: int) -> None:
        """Only frames whose number ``step`` divides: a power of two."""
        self._step = step
        lattice = f"!(pfn & {step - 1:#x})" if step > 1 else ""
        pages, frees, _ = self.instances
        parts = [self.condition, lattice] if lattice else [self.condition]
        pages.write(f"events/{ALLOC}/filter", " && ".join(parts))
        frees.write(f"events/{FREE}/filter", lattice or "0")

    def tasks_on(self) -> None:
        """Follow forks and moves; before anybody is looked at."""
        tasks = self.instances[2]
        tasks.write(f"events/{FORK}/enable", "1")
        if self.move_format:
            tasks.write(f"events/{MOVE}/enable", "1")
        kprobes.enable(tasks, self._group, self.probes)

    def pages_on(self) -> None:
        """Frees first: what is taken before is never taken for held."""
        pages, frees, _ = self.instances
        frees.write(f"events/{FREE}/enable", "1")
        if self.options.with_hist:
            self.has_hist = hist.arm(pages, self.condition)
        pages.write(f"events/{ALLOC}/enable", "1")
        self.is_on = True

    def off(self) -> None:
        """No event costs anything any more."""
        self.is_on = False
        if sums := self.sums():
            self._sums_before = sums
        self.has_hist = False
        clear_triggers(self.pages.folder)
        for instance in self.instances:
            with suppress(OSError):
                instance.write("events/enable", "0")

    def is_recording(self) -> bool:
        """False when somebody else switched one of our instances off, as whoever opens its
        ``free_buffer`` does, were it only to read all files there are, or resets all tracing.
        """
        events = zip(self.instances, (ALLOC, FREE, FORK), strict=True)
        return not self.is_on or all(
            instance.read("tracing_on").strip() != "0"
            and instance.read(f"events/{event}/enable").startswith("1")
            for instance, event in events
        )

    def sums(self) -> hist.Sums | None:
        """What the kernel itself counted by thread; None where it cannot."""
        if not self.has_hist:
            return self._sums_before if self._sums_before.pages else None
        if (now := hist.read(self.pages)) is None:
            return None
        told = self._sums_before.plus(now)
        if now.is_nearly_full and hist.empty(self.pages, self.condition):
            self._sums_before = told.largest()
        return told

    def forget_sums(self) -> None:
        """Begin the kernel's sums by thread again, from zero."""
        if self.is_on:
            clear_triggers(self.pages.folder)
            self.has_hist = self.has_hist and hist.arm(self.pages, self.condition)
        self._sums_before = hist.Sums({}, 0)

    def record_again(self) -> None:
        """Record again where ``is_recording`` is false: buffers, filters and events set up anew."""
        self.off()
        self.grow()
        self.filter(self._step)
        self.tasks_on()
        self.pages_on()
        for instance in self.instances:
            instance.write("tracing_on", "1")

    def shrink(self) -> None:
        """Give the buffers back."""
        for instance in self.instances:
            instance.write("buffer_size_kb", str(SMALLEST_KIB))

    def wake_at(self, percent: int) -> bool:
        """Wake whoever polls when so much of a buffer is full (5.0); else at the first event."""
        try:
            for instance in self.instances[:2]:
                instance.write("buffer_percent", str(percent))
        except OSError:
            return False
        return True

    def grow(self) -> None:
        """Buffers as large as they may be; less where memory for them is short."""
        wanted = (self.buffer_kib, self.buffer_kib // 2, _TASKS_KIB)
        for instance, size in zip(self.instances, wanted, strict=True):
            for tried in (size, size // 4, size // 16):
                with suppress(OSError):
                    instance.write("buffer_size_kb", str(max(SMALLEST_KIB, tried)))
                    break

    def buffer_bytes(self) -> int:
        """Uncounted memory that is ours while we trace."""
        total = 0
        for instance in self.instances:
            with suppress(OSError, ValueError):
                total += int(instance.read("buffer_total_size_kb").split()[0]) << 10
        return total

    def close(self) -> None:
        """Remove everything; nothing of it may fail."""
        for stream in self._streams:
            stream.close()
        self._streams = []
        for instance in self.instances:
            disarm(instance.folder)
        for instance in self.instances:
            instance.close()
        if self.probes:
            kprobes.remove_group(self.root, self._group)


def check_layout(header_page: str) -> None:
    """TracingProblem for ``events/header_page`` of a kernel whose pages we cannot read."""
    fields = fields_of(header_page)
    at = [fields[name].offset for name in ("timestamp", "commit", "data") if name in fields]
    if at != [0, 8, 16] or sys.byteorder != "little":
        words = "this kernel's ring buffer is not laid out as on 64-bit little-endian machines"
        raise TracingProblem("absent", words, "events/header_page")


def _chosen_kib() -> int:
    """For one CPU: a ring of 2 GiB is taken in half a second, with 20 MiB of stacks."""
    cpus = os.cpu_count() or 1
    most = min(_BUFFER_MOST_KIB, _BUFFERS_MOST_KIB // cpus)
    with suppress(OSError, ValueError), open("/proc/meminfo", "rb") as file:
        for line in file:
            if line.startswith(b"MemAvailable:"):
                most = min(most, int(line.split()[1]) // _SHARE_OF_AVAILABLE // cpus)
    return max(_BUFFER_LEAST_KIB, most)
