# SPDX-License-Identifier: Apache-2.0
"""Known drivers by their own allocator: kprobes on it, and who holds how much of it.

Kernel document: trace/kprobetrace.rst.  Argument 2 of ``nv_alloc_pages`` is the number of pages
in every version of NVIDIA's module; the handle that its inner function gets is the one that is
freed.  A probe is global, so it carries our name and is removed when nothing of ours lives.
"""

import os
import re
from collections import defaultdict
from contextlib import suppress
from typing import Final, NamedTuple

from seawall.host.page_trace.instances import PREFIX, Instance
from seawall.host.page_trace.options import TracedDriver
from seawall.host.page_trace.tracefs import FOLDER, has, read_text, write_text

PROBES: Final = "kprobe_events"
_GROUP: Final = re.compile(r"^[pr]\d*:(seawall_(\d{1,10})_(\d{1,20}))/(\S+)")
_REGISTERS: Final = {
    "x86_64": ("%di", "%si", "%dx", "%cx"),
    "aarch64": ("%x0", "%x1", "%x2", "%x3"),
}
_OUTSTANDING_MOST: Final = 1 << 18


class Probe(NamedTuple):
    """One line of kprobe_events, and what its event means."""

    event: str
    kind: str
    driver: int
    sort: str
    """``p``, or ``r`` for its return."""
    what: str

    def definition(self, group: str) -> str:
        """The line for kprobe_events that defines this probe in ``group``."""
        return f"{self.sort}:{group}/{self.event} {self.what}"


def lines_for(
    driver: TracedDriver, number: int, symbols: set[str], machine: str
) -> list[list[Probe]]:
    """For each probe its definitions, best first; [] when the symbol is not there.

    ``symbols`` are those of the module, as in kallsyms.
    """
    if driver.allocate not in symbols:
        return []
    wanted = [(driver.allocate, "alloc", driver.count_argument, "u32")]
    wanted += [(name, "carry", 2, "u64") for name in driver.carriers if name in symbols]
    wanted += [(name, "free", 1, "u64") for name in driver.frees if name in symbols]
    where = f"{driver.module}:" if driver.module else ""
    probes = []
    for at, (symbol, kind, argument, width) in enumerate(wanted):
        event = f"{kind}{number}_{at}"
        probes.append(
            [
                Probe(event, kind, number, "p", f"{where}{symbol} value={how}:{width}")
                for how in _argument(argument, machine)
            ]
        )
    done = f"done{number}"
    what = f"{where}{driver.allocate} value=$retval:u32"
    return [*probes, [Probe(done, "done", number, "r", what)]]


def _argument(number: int, machine: str) -> list[str]:
    """``$argN`` where the kernel knows it (4.20), else the register of the calling convention."""
    registers = _REGISTERS.get(machine, ())
    return [f"$arg{number}", *registers[number - 1 : number]]


def add(root: int, group: str, choices: list[list[Probe]]) -> list[Probe]:
    """Define one of each; those that the kernel took."""
    taken = []
    for probes in choices:
        for probe in probes:
            try:
                write_text(PROBES, probe.definition(group) + "\n", root)
            except OSError:
                continue
            taken.append(probe)
            break
    return taken


def remove_group(root: int, group: str) -> bool:
    """Delete the probes of one group; they must be off in every instance."""
    if not has(PROBES, root):
        return True
    is_clean = True
    for line in read_text(PROBES, root).splitlines():
        match = _GROUP.match(line)
        if match and match[1] == group:
            try:
                write_text(PROBES, f"-:{group}/{match[4]}\n", root)
            except OSError:
                is_clean = False
    return is_clean


def group_name(name: str) -> str:
    """The group of an instance's probes: ``seawall-12-3456-pages`` has seawall_12_3456."""
    return "_".join(name.split("-")[:3])


def sweep_probes(root: int) -> None:
    """Remove the probes of runs that have no instance any more."""
    if not has(PROBES, root):
        return
    fd = os.open("instances", FOLDER, dir_fd=root)
    try:
        living = {group_name(name) for name in os.listdir(fd) if name.startswith(PREFIX)}
    finally:
        os.close(fd)
    groups = {
        match[1] for line in read_text(PROBES, root).splitlines() if (match := _GROUP.match(line))
    }
    for group in groups - living:
        with suppress(OSError):
            remove_group(root, group)


def enable(instance: Instance, group: str, probes: list[Probe]) -> None:
    """Record them in this instance; one whose module has gone meanwhile stays off."""
    for probe in probes:
        with suppress(OSError):
            instance.write(f"events/{group}/{probe.event}/enable", "1")


class KprobedPages:
    """What a driver gave out and took back, by the task that asked.

    ``alloc`` tells the number of pages, ``carry`` the handle, both of one thread one after the
    other; ``done`` with a status that is not 0 takes back what failed.
    """

    def __init__(self) -> None:
        self.taken: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.freed: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.is_cut = False
        self._asked: dict[int, tuple[int, int]] = {}
        """By task: pages, and the handle once it is known."""
        self._held: dict[int, tuple[int, int, int]] = {}
        """By handle: driver, task, pages."""

    def note(self, kind: str, driver: int, task: int, value: int) -> None:
        """One event, in the order of time."""
        if kind == "alloc":
            self._asked[task] = (value, 0)
            self.taken[driver, task] += value
        elif kind == "carry" and task in self._asked:
            pages, _ = self._asked[task]
            self._asked[task] = (pages, value)
            self.is_cut = self.is_cut or len(self._held) >= _OUTSTANDING_MOST
            if len(self._held) < _OUTSTANDING_MOST:
                self._held[value] = (driver, task, pages)
        elif kind == "done":
            pages, handle = self._asked.pop(task, (0, 0))
            if value and pages:  # it failed: nothing was given out
                self.taken[driver, task] -= pages
                self._held.pop(handle, None)
        elif kind == "free" and value in self._held:
            owner, asked_by, pages = self._held.pop(value)
            self.freed[owner, asked_by] += pages

    def tasks(self) -> set[int]:
        """Numbers of all tasks that took pages or asked for some."""
        return {task for _, task in self.taken} | self._asked.keys()

    def renumber(self, rows: dict[int, int]) -> None:
        """``rows``: the new number of each task."""
        for sums in (self.taken, self.freed):
            items = [((driver, rows[task]), pages) for (driver, task), pages in sums.items()]
            sums.clear()
            sums.update(items)
        self._asked = {rows[task]: value for task, value in self._asked.items()}
        self._held = {
            handle: (driver, rows[task], pages)
            for handle, (driver, task, pages) in self._held.items()
        }
