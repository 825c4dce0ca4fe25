# SPDX-License-Identifier: Apache-2.0
"""Everything once, before memory is locked: what was never walked would fault from disk later.

A shortage that is not there is judged over groups that are not there and told to nobody; nothing
is done and nothing is written but the status.
"""

import gc
import os
import socket
import time
from collections.abc import Mapping

from seawall import own_process
from seawall.actions.orders import Order, Outcome, Target
from seawall.guard.judge.judge import Judge
from seawall.guard.judge.policy_state_json import state_pieces
from seawall.guard.judge.rescue import RescueRequest
from seawall.guard.loop import Loop
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.sense.tree import GroupTree
from seawall.guard.settings import Settings
from seawall.guard.tell.dry_run import tell_on_paper
from seawall.guard.tell.paths import REHEARSAL_TREE
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, Group, Node, Outside

GROUPS, FEW_GROUPS = 250, 10
"""Many for the memory that it takes; a few touch the same code."""
TICKS = 40
SELF_TEST_SECONDS = 5.0
_MIB = 1 << 20


def rehearse(loop: Loop) -> None:
    """Some ticks of the real loop, a kill of the self-test's child, a shortage on paper and a
    decision that nobody is told.
    """
    own_process.let_go_of_files()
    parts = loop.parts
    shortages_on_paper(loop.settings, FEW_GROUPS)
    tell_on_paper(loop.settings, loop.handed.folder, _node(0.0, 0), _groups(FEW_GROUPS))
    cgroup_on_paper(loop.handed.folder)
    gc.collect()  # its places are for what stays
    parts.hands.rehearse()
    parts.observer.rehearse()
    parts.observer.perform(Order("rehearsal", "kill", Target("/", 0, "rehearsal"), "self_test"))
    own = parts.sense.groups.get(loop.handed.own_cgroup)
    if own is not None:
        parts.sense.detail(own)
    until = time.monotonic() + SELF_TEST_SECONDS
    for number in range(10_000):
        loop.tick(time.monotonic())
        if (number >= 3 and not parts.self_test.is_waiting) or time.monotonic() > until:
            break
        time.sleep(0.01)


def cgroup_on_paper(folder: str) -> int:
    """One comes and goes below ``folder``, as inotify tells it: the first pod after the start may
    come on a node that thrashes.  How much of it was heard; nothing of it is left, and a full
    ``/run`` is no reason not to start.
    """
    pod, below = (f"{folder}/{name}" for name in REHEARSAL_TREE)
    tree = GroupTree(below)
    try:
        if not os.path.isdir(below):  # of a guard that was killed in its rehearsal
            os.mkdir(below, 0o700)
        tree.open(0.0)
        os.mkdir(pod, 0o700)
        tree.update(0.0)
        heard = len(tree.new_folders)
        tree.new_folders.clear()
        os.rmdir(pod)
        tree.update(0.0)
        return heard + len(tree.removed_folders)
    except OSError:
        return 0
    finally:
        tree.close()
        for path in (pod, below):
            _remove(path)


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        return


def shortages_on_paper(settings: Settings, groups: int = GROUPS) -> None:
    """As they are judged by these settings, and by those that kill."""
    for settings_ in (settings, settings._replace(mode="enforce", scope=("/",))):
        on_paper(settings_, groups)


def on_paper(settings: Settings, count: int = GROUPS) -> int:
    """How many verdicts a made-up node with a culprit that takes 300 MiB/s led to."""
    judge = Judge(settings, "rehearsal")
    groups = _groups(count)
    culprit = groups["/kubepods/burstable/pod3/c3"]
    verdicts = 0
    for number in range(TICKS):
        now = float(number) * 0.25
        culprit.outside = Outside(number * 75 * _MIB, number * 75 * _MIB, 4096 * _MIB, "paper")
        culprit.outside_slope = 300.0 * _MIB
        node = _node(now, max(0, (TICKS - number) * 75 * _MIB - 1024 * _MIB))
        judge.wants(node, groups)
        verdict = judge.step(node, groups)
        verdicts += verdict is not None
        judge.updates(node, groups)
    if count == FEW_GROUPS:  # of many it would take more than a guard that runs does
        culprit.pod = "paper"
        judge.rescue(_node(float(TICKS), 0), groups, RescueRequest("paper", ("paper",), {}))
        record_on_paper(judge, _node(float(TICKS), 0), groups, settings)
    return verdicts


def record_on_paper(
    judge: Judge, node: Node, groups: Mapping[str, Group], settings: Settings
) -> int:
    """A recorder that nobody is hears all that there is to tell; how much was lost."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    link = RecorderLink(ours)
    theirs.send(b'{"t":"hello","pid":1,"next":1}')
    for _ in link.messages(0.0):
        link.is_due(0.0)
    link.start(settings, judge.last_decision, state_pieces(judge), 0.0)
    order = Order("rehearsal", "kill", Target("/", 0, "rehearsal"), "self_test")
    for _ in range(2):
        link.tick(node, groups, judge.state(), [Outcome(order, is_done=True)])
    link.line(b"{}\n")
    link.close()
    theirs.close()
    return link.lost


def _groups(count: int) -> dict[str, Group]:
    return {group.path: group for group in map(_group, range(count))}


def _group(number: int) -> Group:
    group = Group(f"/kubepods/burstable/pod{number}/c{number}", 1000 + number, f"paper/{number}")
    group.charge_bytes = (number % 7 + 1) * 16 * _MIB
    group.limit_bytes = 400 * _MIB
    group.gives_back_bytes = group.charge_bytes // 2
    group.class_rank = (BEST_EFFORT, BURSTABLE, GUARANTEED)[number % 3]
    group.adj = (1000, 500, -997)[number % 3]
    return group


def _node(seconds: float, headroom: int) -> Node:
    grown = int(seconds * 300 * _MIB)
    return Node(
        seconds=seconds, total_bytes=16 << 30, free_bytes=headroom, headroom_bytes=headroom,
        swap_bytes=0, swap_used_bytes=0, comparable_bytes=headroom,
        slope_bytes_per_second=300.0 * _MIB, residual_bytes=grown, residual_grown_bytes=grown,
        residual_slope_bytes_per_second=300.0 * _MIB, unexplained_growth_bytes=0,
        is_low=headroom < 256 * _MIB, is_min=headroom < 64 * _MIB, stalls_per_second=5.0,
        protected_stall=0.2, late_seconds=0.0, own_major_faults=0, kernel_kills=0, exits=0,
        claims_seconds=0.2,
    )  # fmt: skip
