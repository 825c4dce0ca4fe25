# SPDX-License-Identifier: Apache-2.0
"""A guard's end of the pair, and what it tells: ticks of groups that are all made up."""

import json
import socket
import time
from collections.abc import Sequence

from seawall.guard.judge.judge import Judge
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.tick_facts import Group, Node
from seawall.recorder.guard_messages import GuardStart
from seawall.replay.policy_state_codec import state_document
from seawall.replay.tick import Tick

GUARDS: list["Guard"] = []
"""Of the test that runs; ``conftest.py`` lets go of them."""
BOOT_ID = "12345678-9abc-def0-1234-56789abcdef0"


def node(seconds: float, **other: float) -> Node:
    """Of a machine in peace."""
    figures = {
        "total_bytes": 8 << 30, "free_bytes": 4 << 30, "headroom_bytes": 6 << 30,
        "swap_bytes": 0, "swap_used_bytes": 0, "comparable_bytes": 0,
        "slope_bytes_per_second": 0.0, "residual_bytes": 0, "residual_grown_bytes": 0,
        "residual_slope_bytes_per_second": 0.0, "unexplained_growth_bytes": 0, "is_low": False,
        "is_min": False, "stalls_per_second": 0.0, "protected_stall": 0.0, "late_seconds": 0.0,
        "own_major_faults": 0, "kernel_kills": 0, "exits": 0, "claims_seconds": None,
    }  # fmt: skip
    return Node(seconds, **(figures | other))  # type: ignore[arg-type]


def groups(count: int, charge: int = 1 << 20) -> dict[str, Group]:
    """Of containers."""
    found = {}
    for number in range(count):
        group = Group(f"/kubepods/pod{number}/c{number}", number + 2, f"default/pod-{number}/app")
        group.charge_bytes = charge + number * 4096
        found[group.path] = group
    return found


def tick(number: int, seconds: float, state: str = "peace", **other: float) -> Tick:
    """With two groups."""
    return Tick(number, 1.7e9 + seconds, state, node(seconds, **other), groups(2, number << 12), ())


def start() -> GuardStart:
    """Of a guard that has just begun."""
    return GuardStart(Settings(), "", state_document(Judge(Settings(), BOOT_ID, own_cgroup="/own")))


class Guard:
    """At one end of a real pair of sockets."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.setblocking(False)
        self.link = RecorderLink(self.ours)
        self.judge = Judge(Settings(), BOOT_ID, own_cgroup="/own")
        self.said: list[dict[str, object]] = []
        GUARDS.append(self)

    def close(self) -> None:
        """Let go of both ends."""
        self.link.close()
        self.theirs.close()

    def hear(self) -> Sequence[dict[str, object]]:
        """What the recorder said so far."""
        self.said += self.link.messages(time.monotonic())
        return self.said

    def wait_for(self, kind: str, seconds: float = 20.0) -> dict[str, object]:
        """The last message of a kind, once there is one."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            found = [message for message in self.hear() if message["t"] == kind]
            if found:
                return found[-1]
            time.sleep(0.01)
        raise AssertionError(f"no {kind} in {seconds} s: {self.said}")

    def tick(self, state: str = "peace", count: int = 5, **other: float) -> int:
        """One of now; its number."""
        self.hear()
        now = time.monotonic()
        if self.link.is_due(now):
            mind = json.dumps(state_document(self.judge))
            self.link.start(self.judge_settings, "", mind, now)
        seen, there = node(now, **other), groups(count, int(now * 1000) % 10**6)
        self.judge.step(seen, there)
        self.link.tick(seen, there, state, ())
        return self.link.number

    @property
    def judge_settings(self) -> Settings:
        """As the judge has them."""
        return Settings()
