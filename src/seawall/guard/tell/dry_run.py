# SPDX-License-Identifier: Apache-2.0
"""The real telling of a decision, for nobody: to an aide that does nothing, and into a folder
that is removed again.
"""

import json
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

from seawall.actions.orders import Order, Outcome, Target
from seawall.guard.aide import Aide
from seawall.guard.settings import Settings
from seawall.guard.tell.decision_lines import ROWS_A_LINE
from seawall.guard.tell.paths import (
    REHEARSAL,
    REHEARSAL_FILES,
    REHEARSAL_KMSG,
    REHEARSAL_PMSG,
    Paths,
)
from seawall.guard.tell.teller import Teller
from seawall.guard.tick_facts import BURSTABLE, Group, Node
from seawall.guard.verdict import DecisionUpdate, Rank, Verdict

_DECISION: Final = "rehearse-0001"
_BYTES: Final = 1 << 28


class _Nobody(Aide):
    """Takes everything; the real one is asked in every tick and needs no rehearsal."""

    __slots__ = ()

    def __init__(self) -> None:
        """It has no end of a pair, and no buffer."""

    @property
    def is_alive(self) -> bool:
        return True

    def send(self, request: dict[str, Any]) -> bool:
        return bool(json.dumps(request))

    def take(self, kind: str, *, is_ready: bool = True) -> dict[str, Any] | None:  # noqa: ARG002 - the aide's interface
        return None


def tell_on_paper(settings: Settings, folder: str, node: Node, groups: Mapping[str, Group]) -> None:
    """A kill of full size, its outcome and what came back, below ``folder``; nothing of it is
    left.  Never raises OSError: a full ``/run`` is no reason not to start.
    """
    below = f"{folder}/{REHEARSAL}"
    paths = Paths(below, kmsg=f"{below}/{REHEARSAL_KMSG}", pmsg=f"{below}/{REHEARSAL_PMSG}")
    ear, to = _ear() if settings.datagram_to else (None, "")
    # Whatever a reload may switch on.
    settings = settings._replace(
        datagram_to=to, pmsg=True, textfile="paper", run_after_kill="paper",
        run_on_decision="paper", termination_message=True, job_output=True, job_comment=True,
    )  # fmt: skip
    teller = Teller(settings, paths, _DECISION, _Nobody())
    try:
        _make(paths)
        teller.open()
        _tell(teller, node, groups)
    finally:
        teller.close()
        remove_dry_run(paths)
        if ear is not None:
            ear.close()


def _tell(teller: Teller, node: Node, groups: Mapping[str, Group]) -> None:
    teller.status(node, groups, "near", {})
    rows = tuple([_rank(place) for place in range(1, ROWS_A_LINE + 1)])
    rest = (_rank(place) for place in range(1, ROWS_A_LINE + 1))
    order = Order(_DECISION, "kill", Target(rows[0].path, 1, rows[0].name), "node_short", _BYTES)
    sentence = f"256 MiB have to come back within 4 s: {order.target.name} is killed"
    verdict = Verdict(
        _DECISION, node.seconds, "node_short", False, _BYTES, 4.0, (order,), rows, "", sentence
    )
    teller.verdict(verdict, rest)
    teller.verdict(verdict._replace(ranking=(), sentence="it is killed at last"), ())
    outcome = Outcome(order, is_done=True, processes=3)
    teller.update_decision(DecisionUpdate(_DECISION, node.seconds, outcome, None, ""))
    job = order._replace(target=Target("/slurm/uid_1/job_1", 1, "slurm:1"))
    teller.before_end(job, f"{teller.folder}/paper")
    teller.outcome(Outcome(job, is_done=True, processes=3))
    teller.update_decision(
        DecisionUpdate(_DECISION, node.seconds, None, _BYTES, "256 MiB came back in 0.3 s")
    )
    teller.event(sentence)
    teller.status(node._replace(kernel_kills=1), groups, "short", {"paper": "a note"})


def _rank(place: int) -> Rank:
    return Rank(
        path=f"/kubepods/burstable/pod{place:036x}/{place:064x}", inode=place,
        name=f"namespace/workload-{place:010x}/container", place=place, class_rank=BURSTABLE,
        charge_bytes=_BYTES, limit_bytes=_BYTES, outside_certain_bytes=_BYTES,
        outside_most_bytes=_BYTES, expected_return_bytes=_BYTES, growth_bytes_per_second=1.5,
        score=1.5, reasons=("256 MiB over its limit of 256 MiB", "256 MiB should come back"),
        against=("within its promise of 256 MiB: not touched while others are over theirs",),
    )  # fmt: skip


def _ear() -> tuple[socket.socket | None, str]:
    """Where a datagram goes that nobody reads; no address: there is no network to try."""
    ear = None
    try:
        ear = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        ear.bind(("127.0.0.1", 0))
    except OSError:
        return ear, ""
    return ear, f"127.0.0.1:{ear.getsockname()[1]}"


def _make(paths: Paths) -> None:
    try:
        if not os.path.isdir(paths.folder):  # of a guard that was killed in its rehearsal
            os.mkdir(paths.folder, 0o700)
        for path in (paths.kmsg, paths.pmsg):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:  # the parts that would write there know what to do
        return


def remove_dry_run(paths: Paths) -> None:
    """The files that a dry run wrote, and nothing else in the folder."""
    for name in REHEARSAL_FILES:
        try:
            os.unlink(f"{paths.folder}/{name}")
        except OSError:
            continue
    try:
        os.rmdir(paths.folder)
    except OSError:
        return
