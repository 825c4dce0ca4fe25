# SPDX-License-Identifier: Apache-2.0
"""The agent's /metrics, in Prometheus' text format 0.0.4, and whether it is ready.

What is not known is left out.  The guard's own counters are in its textfile (``guard metrics``).
"""

import time
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Final

from seawall.agent.culprits import culprit_of
from seawall.agent.guard_page import GuardPage
from seawall.agent.node_agent import NodeAgent
from seawall.guard.metrics_server import METRICS_TYPE, MetricsServer, Reply
from seawall.guard.tell.textfile import label
from seawall.version import VERSION

STATES: Final = ("peace", "near", "short", "holding", "blind", "silent")
ALIVE_SECONDS: Final = 60.0


class AgentServer(MetricsServer):
    """Of one agent; asked in threads of its own, which read what the loop has left."""

    def __init__(self, address: tuple[str, int], agent: NodeAgent) -> None:
        self.agent = agent
        super().__init__(address, "", self._ready)

    def metrics(self) -> Reply:
        """Of the last page."""
        now = time.monotonic()
        lines = metrics_of(self.agent.watch.current(now), self.agent.counts)
        return Reply(HTTPStatus.OK, "\n".join(lines) + "\n", METRICS_TYPE)

    def _ready(self) -> Reply:
        quiet = time.monotonic() - self.agent.turned_at
        if quiet > ALIVE_SECONDS:
            words = f"the agent has not turned for {quiet:.0f} s\n"
            return Reply(HTTPStatus.SERVICE_UNAVAILABLE, words)
        return Reply(HTTPStatus.OK, "the agent looks and can tell\n")


def metrics_of(page: GuardPage | None, counts: dict[tuple[str, str], int]) -> Iterator[str]:
    """Lines of the exposition; None: the guard is silent."""
    yield from _family("build_info", "gauge", "1, with the version of the agent.",
                       [f'{{version="{label(VERSION)}"}} 1'])  # fmt: skip
    state = "silent" if page is None else page.state
    yield from _family(
        "guard_state", "gauge", "1 for the state that the guard is in.",
        [f'{{state="{one}"}} {int(one == state)}' for one in STATES],
    )  # fmt: skip
    if page is not None:
        yield from _of_page(page)
    yield from _family(
        "reports_total", "counter", "What the agent told the API server, by kind and result.",
        [f'{{kind="{kind}",result="{result}"}} {count}'
         for (kind, result), count in sorted(counts.items())],
    )  # fmt: skip


def _of_page(page: GuardPage) -> Iterator[str]:
    rows = (
        ("node_headroom_bytes", "gauge", "What programs can still have before reclaim hurts.",
         page.headroom_bytes),
        ("node_uncounted_bytes", "gauge", "Memory of the node that no counter explains.",
         page.uncounted_bytes),
        ("node_memory_bytes", "gauge", "All memory of the node that programs can have.",
         page.total_bytes or None),
        ("node_headroom_seconds", "gauge", "Until the headroom is gone at this pace.",
         page.headroom_seconds),
        ("guard_can_kill", "gauge", "Whether the last self-test proved that it can kill.",
         int(page.can_kill)),
        ("guard_kills_total", "counter", "Workloads that the guard told to end.", page.kills),
    )  # fmt: skip
    for name, kind, words, value in rows:
        if value is not None:
            yield from _family(name, kind, words, [f" {value}"])
    modes = [f'{{mode="{mode}"}} {int(mode == page.mode)}' for mode in ("observe", "enforce")]
    yield from _family("guard_mode", "gauge", "1 for the mode that the guard is in.", modes)
    held: dict[str, int] = {}
    for holder in page.holders:
        one = culprit_of(holder, is_proved=False)
        if one and one.certain_bytes:
            labels = (
                f'{{namespace="{label(one.namespace)}",pod="{label(one.pod)}",'
                f'container="{label(one.container)}"}}'
            )
            held[labels] = held.get(labels, 0) + one.certain_bytes
    if held:
        yield from _family(
            "workload_uncounted_bytes", "gauge",
            "Least uncounted memory of a container, of those with most.",
            [f"{labels} {count}" for labels, count in held.items()],
        )  # fmt: skip


def _family(name: str, kind: str, words: str, rows: Iterable[str]) -> Iterator[str]:
    yield f"# HELP seawall_{name} {words}"
    yield f"# TYPE seawall_{name} {kind}"
    for row in rows:
        yield f"seawall_{name}{row}"
