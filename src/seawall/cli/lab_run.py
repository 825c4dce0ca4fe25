# SPDX-License-Identifier: Apache-2.0
"""From the options of ``seawall lab`` to a plan that may run here, and its run on a terminal."""

import mmap
import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from seawall.lab import disk, lab_text, leftovers, rings
from seawall.lab.cgroup_parent import CgroupParent, find_cgroup_parent, pids_left, room_above
from seawall.lab.libraries import answer_in_child
from seawall.lab.plan import SWAP_SHARE, UNCOUNTED, Driver, Kind, MachineFacts, Plan, problems
from seawall.lab.run import Run, Stop
from seawall.lab.run_report import LabMoment, LabReport
from seawall.lab.small_files import read_number, read_table
from seawall.lab.uncounted import QUESTIONS, whole_grains
from seawall.problems import UsageProblem
from seawall.views.terminal import Console


def judged_plan(arguments: Namespace) -> tuple[Plan, CgroupParent]:
    """The plan and its place; UsageProblem when it must not run here."""
    plan = _plan(arguments)
    if plan.uid is not None and os.geteuid() != 0:
        raise UsageProblem("--uid needs root: only root can become another user")
    if plan.kind in UNCOUNTED:
        plan = _driven(plan)
    if plan.folder is not None and (words := disk.folder_problem(plan.folder)):
        raise UsageProblem(words)
    home = _place(plan, arguments.parent, large=arguments.yes_large)
    if plan.killer_off and home.version == 2:
        raise UsageProblem("--killer-off: cgroup v2 cannot switch its OOM killer off; only v1 can")
    return plan, home


def _place(plan: Plan, parent: str | None, *, large: bool) -> CgroupParent:
    try:
        home = find_cgroup_parent(parent)
    except UsageProblem:
        # What is too large anywhere is said first.
        _refuse(plan, _facts(plan, None), large=large)
        raise
    _refuse(plan, _facts(plan, home), large=large)
    return home


def _refuse(plan: Plan, facts: MachineFacts, *, large: bool) -> None:
    for words in problems(plan, facts, large=large):
        raise UsageProblem(words)


def _plan(arguments: Namespace) -> Plan:
    kind: Kind = arguments.lab_verb
    given = vars(arguments)
    if kind in UNCOUNTED:
        given = {**given, "size": whole_grains(kind, given["size"])}
    if kind in ("swarm", "thrash"):
        processes = given["processes" if kind == "swarm" else "programs"]
        each = given["each" if kind == "swarm" else "code"]
    else:
        processes, each = 1, given["size"]
    wanted = processes * each
    needs_disk = kind in ("fill", "thrash")
    return Plan(
        kind=kind,
        processes=processes,
        each_bytes=-(-each // mmap.PAGESIZE) * mmap.PAGESIZE,
        limit_bytes=arguments.limit // mmap.PAGESIZE * mmap.PAGESIZE,
        seconds=arguments.seconds,
        step_bytes=given.get("step") or None,
        respawn=given.get("respawn", False),
        uid=arguments.uid,
        swap=arguments.swap,
        swap_bytes=_swap_bytes(wanted) if arguments.swap else 0,
        killer_off=given.get("killer_off", False),
        folder=(given["folder"] or disk.default_folder()) if needs_disk else None,
        iops=given.get("iops") or None,
    )


def _driven(plan: Plan) -> Plan:
    """With what the driver says of itself; UsageProblem when there is none, or no right to it."""
    if plan.kind == "rings":
        if plan.uid is not None:
            raise UsageProblem("--uid: packet rings need CAP_NET_RAW, which other users have not")
        if why := rings.why_not():
            raise UsageProblem(f"lab rings: {why}")
        return plan
    answer = answer_in_child(QUESTIONS[plan.kind])
    if "problem" in answer:
        raise UsageProblem(f"lab {plan.kind}: {answer['problem']}")
    driver = Driver(
        name=answer["name"] or "unnamed", is_software=answer.get("is_software", False),
        free_bytes=answer["free_bytes"],
    )  # fmt: skip
    return replace(plan, driver=driver)


def _swap_bytes(wanted: int) -> int:
    """What the lab may swap: half of what is free stays for the others."""
    free = read_table("/proc/meminfo").get("SwapFree", 0) << 10
    return min(wanted, int(SWAP_SHARE * free)) // mmap.PAGESIZE * mmap.PAGESIZE


def _mappable(meminfo: Mapping[str, int]) -> int | None:
    if read_number("/proc/sys/vm/overcommit_memory") == 1 or "MemTotal" not in meminfo:
        return None
    return (meminfo["MemTotal"] + meminfo.get("SwapTotal", 0)) << 10


def _facts(plan: Plan, home: CgroupParent | None) -> MachineFacts:
    meminfo = read_table("/proc/meminfo")
    available = meminfo.get("MemAvailable", meminfo.get("MemFree"))
    free = None
    if plan.folder is not None:
        with suppress(OSError):
            found = os.statvfs(plan.folder)
            free = found.f_bavail * found.f_frsize
    room, whose = room_above(home) if home else (None, "")
    return MachineFacts(
        page_size=mmap.PAGESIZE,
        available_bytes=None if available is None else available << 10,
        room_bytes=room,
        room_of=whose,
        mappable_bytes=_mappable(meminfo),
        pids_left=pids_left(home) if home else None,
        disk_free_bytes=free,
        folder_fs=disk.filesystem_of(plan.folder) if plan.folder else None,
    )


class Session:
    """One run with its words on the terminal, or in silence for ``--json``."""

    def __init__(self, plan: Plan, home: CgroupParent, paper: Console, *, quiet: bool) -> None:
        self._plan = plan
        self._home = home
        self._paper = paper
        self._quiet = quiet
        self._has_head = False
        self.stop = Stop()
        self.removed: list[leftovers.Leftover] = []
        """What dead runs had left here."""

    def perform(self, path: str) -> LabReport:
        """Clean up what is left from before, introduce, run."""
        with self.stop.listening():
            self.removed = leftovers.clean_below([*self._home.parents.values()], self._plan.folder)
            if not self._quiet:
                if self.removed:
                    self._say("from runs that were killed:")
                    self._say(*lab_text.clean_lines(self.removed, self._paper))
                self._say(*lab_text.introduction(self._plan, path, self._paper))
            run = Run(self._plan, self._home, self.stop, self._tell)
            try:
                return run.perform()
            except BaseException:
                if run.left:
                    names = ", ".join(run.left)
                    sys.stderr.write(f"seawall: not removed: {names}; try: seawall lab clean\n")
                raise

    def _tell(self, moment: LabMoment) -> None:
        if self._quiet:
            return
        if not self._has_head:
            self._has_head = True
            self._say(lab_text.table_head(self._plan))
        self._say(lab_text.row(self._plan, moment))

    def _say(self, *lines: str) -> None:
        for line in lines:
            print(line)
        sys.stdout.flush()
