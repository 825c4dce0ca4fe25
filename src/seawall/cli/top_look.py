# SPDX-License-Identifier: Apache-2.0
"""The slow look of ``seawall top``: names of workloads and their uncounted memory, from a child.

It reads what may hang (files of runtimes on the node's disk, other processes) and takes tens of
megabytes for a moment: neither belongs into the process that has the terminal.  The child is the
first that the kernel ends when memory runs out.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seawall.accounts.live_view.live_history import KnownWorkload
from seawall.cgroup_paths import Kind
from seawall.cli.top_terminal import leave_signals_to_parent
from seawall.host.background_question import BackgroundQuestion
from seawall.host.host import JSON, Unread
from seawall.proc.forked_child import bury

if TYPE_CHECKING:
    from seawall.readings.memcg import Memcgs

EVERY_SECONDS: Final = 30.0
NAMES_SECONDS: Final = 5.0
"""At least between two looks for the names of new workloads."""
SHARE_MOST: Final = 0.0025
"""Of a processor, each kind of look: where one costs more than 0.075 s, the next one is later."""
DEADLINE_SECONDS: Final = 25.0
_NAME_MOST: Final = 1024
_UNSEEN_MOST: Final = 64


class LookAnswer(NamedTuple):
    """What it found."""

    known: dict[str, KnownWorkload]
    """By cgroup."""
    node_bytes: int | None
    """Uncounted memory of the whole node."""
    has_uncounted: bool
    """Whether claims could be had at all."""
    is_whole: bool
    """Every source could be asked."""
    seconds: float
    """Of the monotonic clock, when it began."""
    unseen: Sequence[tuple[str, str, str]] = ()
    """What, why, what would let it be seen: rows of "Could not see"."""


class SlowLook:
    """One child at a time, and when the next one is due."""

    def __init__(
        self, root: str, now: float, counted: "Callable[[], Memcgs | None] | None"
    ) -> None:
        """``counted``: what is known of cgroups anyway; asked in the first child, which then does
        less.
        """
        self._root, self._counted = root, counted
        self._question: BackgroundQuestion | None = None
        self._began = 0.0
        self._next = self._next_names = now
        self._is_hurried = self._is_for_names = False
        self.problem = ""
        """Why the last one brought nothing."""
        self.answer: LookAnswer | None = None

    @property
    def fd(self) -> int:
        """To be polled; -1: nobody was asked."""
        return -1 if self._question is None else self._question.fd

    def hurry(self) -> None:
        """There are workloads without a name."""
        self._is_hurried = True

    def go_on(self, now: float, *, is_ready: bool) -> bool:
        """Take the answer, begin the next one; whether something is new.  Never waits.

        ``is_ready``: ``fd`` can be read.
        """
        bury()
        if self._question is not None:
            if not is_ready and now - self._began < DEADLINE_SECONDS:
                return False
            self._take(now)
            return True
        if now >= self._next:
            self._ask(now, is_for_names=False)
        elif self._is_hurried and now >= self._next_names:
            self._ask(now, is_for_names=True)
        return False

    def _ask(self, now: float, *, is_for_names: bool) -> None:
        self._is_hurried, self._is_for_names, self._began = False, is_for_names, now
        self._next_names = now + NAMES_SECONDS
        if not is_for_names:
            self._next = now + EVERY_SECONDS
        root, counted = self._root, self._counted
        look: Callable[[str], JSON] = _names
        if not is_for_names and self.answer is None:
            look = partial(_look, counted=counted)
        elif not is_for_names:
            _load()
            look = _look
        try:
            self._question = BackgroundQuestion("top", lambda: look(root), DEADLINE_SECONDS)
        except OSError as error:  # no memory, or no pid, for a child
            self.problem = f"fork: {error.strerror}"

    def _take(self, now: float) -> None:
        question, self._question = self._question, None
        if question is None:
            return
        found = question.answer() if now - self._began < DEADLINE_SECONDS else None
        question.drop()
        if found is None:
            self.problem = f"no answer in {DEADLINE_SECONDS:.0f} s"
        elif isinstance(found, Unread):
            self.problem = found.detail or found.why
        elif isinstance(found, dict) and isinstance(found.get("problem"), str):
            self.problem = str(found["problem"])
        elif isinstance(found, dict) and self._is_for_names:
            self._next_names = self._began + max(NAMES_SECONDS, _cost(found) / SHARE_MOST)
            if self.answer is not None:
                known = {**_known_of(found), **self.answer.known}
                self.answer = self.answer._replace(known=known)
        elif isinstance(found, dict):
            self.problem = ""
            self.answer = _answer_of(found, self._began)
            self._next = self._began + max(EVERY_SECONDS, _cost(found) / SHARE_MOST)

    def close(self) -> None:
        """End the child."""
        if self._question is not None:
            self._question.drop()
            self._question = None


def _cost(found: dict[str, Any]) -> float:
    cost = found.get("cpu_seconds")
    return float(cost) if isinstance(cost, (int, float)) else 0.0


def _known_of(found: dict[str, Any]) -> dict[str, KnownWorkload]:
    """Of a child of ours: its shape is known."""
    return {
        path: KnownWorkload(name, kind, is_leaf, uncounted, kills)
        for path, name, kind, is_leaf, uncounted, kills in found["rows"]
    }


def _answer_of(found: dict[str, Any], began: float) -> LookAnswer:
    return LookAnswer(
        _known_of(found), found["node_bytes"], found["has_uncounted"], found["is_whole"], began,
        [(what, why, provide) for what, why, provide in found["unseen"]],
    )  # fmt: skip


def _load() -> None:
    """What a child needs, once a child has had it from the disk: the next ones need not."""
    import seawall.cli.pods  # noqa: PLC0415
    import seawall.views.pods_text  # noqa: F401, PLC0415
    from seawall.accounts.claims.claims import load_sources  # noqa: PLC0415

    load_sources()


def _begin() -> float:
    """In a child, before anything else: processor seconds until here."""
    leave_signals_to_parent()
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    return sum(os.times()[:4])


def _names(root: str) -> JSON:
    """In the child: names of workloads alone."""
    begun = _begin()
    from seawall.accounts.workloads import Workloads  # noqa: PLC0415
    from seawall.host.live import LiveHost  # noqa: PLC0415
    from seawall.readings.snapshot import Snapshot  # noqa: PLC0415
    from seawall.views.pods_text import row_name  # noqa: PLC0415

    host = LiveHost(root, until=time.monotonic() + DEADLINE_SECONDS - 5)
    try:
        found = Snapshot(host).get(Workloads)
        if isinstance(found, Unread):
            return {"problem": found.detail or found.why}
        rows: list[JSON] = [
            [path, row_name(one, {})[:_NAME_MOST], one.kind, True, None, None]
            for path, one in found.by_cgroup.items() if one.kind in ("container", "unit")
        ]  # fmt: skip
        return {"rows": rows, "cpu_seconds": sum(os.times()[:4]) - begun}
    finally:
        host.close()


def _look(root: str, counted: "Callable[[], Memcgs | None] | None" = None) -> JSON:
    """In the child: names, uncounted memory, kills in cgroups that are gone.

    With what is ``counted`` anyway, for the first minute must not cost more than those that follow:
    no kernel log, and so no such kills, and no second reading of ten files of each cgroup.
    """
    begun = _begin()
    # Here and not above: on a stuck disk they may never come.
    from seawall.accounts.claims.claims import Claims  # noqa: PLC0415
    from seawall.accounts.node_memory.ledger import Ledger  # noqa: PLC0415
    from seawall.cli.pods import largest_processes, table_of  # noqa: PLC0415
    from seawall.host.live import LiveHost  # noqa: PLC0415
    from seawall.problems import UsageProblem  # noqa: PLC0415
    from seawall.readings.memcg import Memcgs  # noqa: PLC0415
    from seawall.sources.source import Source  # noqa: PLC0415
    from seawall.views.pods_text import row_name  # noqa: PLC0415

    host = LiveHost(root, until=time.monotonic() + DEADLINE_SECONDS - 5)
    try:
        memcgs = None if counted is None else counted()
        source = Source(host, None, live=None, known={} if memcgs is None else {Memcgs: memcgs})
        names = largest_processes(source)
        table, unseen = table_of(source, with_stalls=True, are_kills_wanted=memcgs is None)
        claims, ledger = source.first.get(Claims), source.first.get(Ledger)
        rows: list[JSON] = []
        for row in table.rows:
            kind: Kind = row.workload.kind
            rows.append([
                row.workload.cgroup, row_name(row.workload, names)[:_NAME_MOST], kind,
                row.is_leaf or bool(row.undivided), row.own.uncounted, row.oom_kills,
            ])  # fmt: skip
        return {
            "rows": rows,
            "node_bytes": None if isinstance(ledger, Unread) else ledger.residual_bytes,
            "has_uncounted": not isinstance(claims, Unread),
            "is_whole": not isinstance(claims, Unread) and not claims.refusals(),
            "unseen": [[row.what, row.why, row.provide] for row in unseen[:_UNSEEN_MOST]],
            "cpu_seconds": sum(os.times()[:4]) - begun,
        }
    except UsageProblem as problem:
        return {"problem": str(problem)}
    finally:
        host.close()
