# SPDX-License-Identifier: Apache-2.0
"""All checks of a node at once, each kind in a child with a deadline: what hangs is left behind.

A silence is an answer: of a mount it is the fault itself, of all else it is told as not seen.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from errno import EBUSY
from functools import partial
from typing import Final, NamedTuple

from seawall.accounts.node_checks import (
    clock_kept,
    filesystem_space,
    gpu_resets,
    kernel_log_faults,
    munge_up,
)
from seawall.accounts.node_checks.answer import NodeAnswer, NodeCheck, NodeFault, NodeUnseen
from seawall.accounts.node_checks.table import CHECKS
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.cli.slurm_file import SiteCommand, SlurmSettings
from seawall.host.background_question import BackgroundQuestion
from seawall.host.host import JSON, Unread

FILES_SECONDS: Final = 3.0
MOUNT_SECONDS: Final = 10.0
GPU_SECONDS: Final = 10.0
_HANG: Final = "mount_hang"
Judge = Callable[[JSON, WantedNode], Iterable[NodeAnswer]]

LOG_CHECKS: Final = (
    ("xid", kernel_log_faults.xids, True, False),
    ("hung", kernel_log_faults.hung, False, True),
    ("disk", kernel_log_faults.disks, False, False),
    ("thermal", kernel_log_faults.heat, False, True),
    ("daemon_oom", kernel_log_faults.daemons, False, True),
)
"""Name, judge, whether it lasts, whether a job may cause it."""
UNTIL_BOOT: Final = frozenset({"xid"})
"""The log forgets them: a drain for one is lifted after a boot alone."""
OTHERS: Final = (_HANG, "space", "gpu_memory", "gpu_kept", "munge", "clock")
LEFTOVERS: Final = ("processes", "shm", "uncounted", "guard")
NAMES: Final = (
    *LEFTOVERS, *(check.name for check in CHECKS), *(row[0] for row in LOG_CHECKS), *OTHERS,
)  # fmt: skip
"""Every check, by its key in slurm.toml."""
OFF_UNLESS_ASKED: Final = frozenset({"gpu_memory", "gpu_kept"})
"""The driver's library may take seconds where persistence mode is off."""


class NodeFinding(NamedTuple):
    """One answer, and the check that gave it."""

    check: NodeCheck
    answer: NodeAnswer


class _Question(NamedTuple):
    checks: tuple[tuple[NodeCheck, Judge], ...]
    what: str
    ask: Callable[[], JSON]
    seconds: float
    may_be_absent: bool = False
    """Then another check tells of it, or there is nothing to tell."""


class NodeLook:
    """Asks when it is made; ``findings`` waits for the answers."""

    def __init__(self, settings: SlurmSettings, names: frozenset[str]) -> None:
        self._wanted = settings.wanted
        self._asked: list[tuple[_Question, BackgroundQuestion | Unread]] = []
        for question in _questions(settings, names):
            asked: BackgroundQuestion | Unread
            try:
                asked = BackgroundQuestion(question.what, question.ask, question.seconds)
            except OSError as error:
                asked = Unread(question.what, "failed", f"no child: {error.strerror}")
            self._asked.append((question, asked))

    def findings(self) -> list[NodeFinding]:
        """Of all checks, in the order of the table."""
        return [one for question, asked in self._asked for one in self._of(question, asked)]

    def _of(self, question: _Question, asked: BackgroundQuestion | Unread) -> Iterator[NodeFinding]:
        answer = asked if isinstance(asked, Unread) else asked.answer()
        for check, judge in question.checks:
            if not isinstance(answer, Unread):
                for one in judge(answer, self._wanted):
                    yield NodeFinding(check, one)
            elif check.name == _HANG and answer.why in ("no_answer", "failed"):
                yield _of_a_mount(check, question.what, answer)
            elif answer.why != "absent" or not question.may_be_absent:
                words = f"{question.what}: {answer.detail or answer.why}"
                yield NodeFinding(check, NodeUnseen(words))


def _of_a_mount(check: NodeCheck, path: str, silence: Unread) -> NodeFinding:
    """An error is a fault of the mount; a job that keeps it busy may be why it does not answer."""
    is_busy = silence.detail == os.strerror(EBUSY)
    words = "an earlier look has not come back" if is_busy else silence.detail
    is_error = silence.why == "failed" and not is_busy
    return NodeFinding(check._replace(jobs_may=not is_error), NodeFault(f"{path}: {words}"))


def _questions(settings: SlurmSettings, names: frozenset[str]) -> Iterator[_Question]:
    """``names``: the checks that are not off."""
    wanted = settings.wanted
    files = tuple(check for check in CHECKS if check.name in names)
    if files:
        rows = tuple((check, partial(_of_files, check.name)) for check in files)
        yield _Question(rows, "files", partial(_ask_files, files, wanted), FILES_SECONDS)
    log = tuple(
        (NodeCheck(name, _nothing, is_lasting, jobs_may), judge)
        for name, judge, is_lasting, jobs_may in LOG_CHECKS if name in names
    )  # fmt: skip
    if log:
        yield _Question(log, "the kernel's log", _ask_log, FILES_SECONDS)
    yield from _mount_questions(wanted, names)
    gpu = tuple(
        (NodeCheck(name, _nothing, is_lasting, jobs_may=name == "gpu_kept"), judge)
        for name, judge, is_lasting in (
            ("gpu_memory", gpu_resets.look, True), ("gpu_kept", gpu_resets.kept, False)
        ) if name in names
    )  # fmt: skip
    if gpu:
        yield _Question(gpu, "NVIDIA's driver", _ask_gpu, GPU_SECONDS)
    if "munge" in names:
        path = wanted.munge_socket or munge_up.SOCKET
        row = (NodeCheck("munge", _nothing, is_lasting=False), munge_up.look)
        yield _Question((row,), "munged", partial(_ask_munge, path), FILES_SECONDS)
    if "clock" in names and wanted.clock:
        row = (NodeCheck("clock", _nothing, is_lasting=False), clock_kept.look)
        yield _Question((row,), "the clock", _ask_clock, FILES_SECONDS)
    for command in settings.commands:
        if command.name in names:
            row = (NodeCheck(command.name, _nothing, is_lasting=False), _of_command)
            ask = partial(_ask_command, command)
            yield _Question((row,), command.words[0], ask, command.seconds + 1)


def _mount_questions(wanted: WantedNode, names: frozenset[str]) -> Iterator[_Question]:
    hang = NodeCheck(_HANG, _nothing, is_lasting=False)
    space = NodeCheck("space", _nothing, is_lasting=False, jobs_may=True)
    mounts = [line.partition(" ")[0] for line in wanted.mounts]
    for path in dict.fromkeys([*mounts, *wanted.free_percent]):
        rows: list[tuple[NodeCheck, Judge]] = []
        if path in mounts and _HANG in names:
            rows.append((hang, _nothing_of))
        if path in wanted.free_percent and "space" in names:
            rows.append((space, partial(filesystem_space.look, path)))
        if rows:
            yield _Question(tuple(rows), path, partial(_ask_room, path), MOUNT_SECONDS, True)


# --- in the children ------------------------------------------------------------------------


def _ask_files(checks: tuple[NodeCheck, ...], wanted: WantedNode) -> JSON:
    from seawall.host.live import LiveHost  # noqa: PLC0415 - in the child

    host = LiveHost("/")
    return {
        check.name: [
            [isinstance(one, NodeFault), one.words] for one in check.look(host, wanted)
        ] for check in checks
    }  # fmt: skip


def _ask_log() -> JSON:
    from seawall.host.kernel_faults import kernel_faults  # noqa: PLC0415 - in the child

    return kernel_faults()


def _ask_room(path: str) -> JSON:
    from seawall.host.filesystem_room import filesystem_room  # noqa: PLC0415 - in the child

    return filesystem_room(path)


def _ask_gpu() -> JSON:
    from seawall.host.gpu_node_health import gpu_node_health  # noqa: PLC0415 - in the child

    return gpu_node_health()


def _ask_munge(path: str) -> JSON:
    from seawall.host.munge_answer import munge_answer  # noqa: PLC0415 - in the child

    return munge_answer(path)


def _ask_clock() -> JSON:
    from seawall.host.clock_state import clock_state  # noqa: PLC0415 - in the child

    return clock_state()


def _ask_command(command: SiteCommand) -> JSON:
    from seawall.host.site_command import site_command  # noqa: PLC0415 - in the child

    return site_command(command.words, command.seconds)


# --- what they said -------------------------------------------------------------------------


def _of_files(name: str, answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    del wanted
    rows = answer.get(name) if isinstance(answer, dict) else None
    for row in rows if isinstance(rows, list) else ():
        match row:
            case [bool(is_fault), str(words)]:
                yield NodeFault(words) if is_fault else NodeUnseen(words)


def _of_command(answer: JSON, wanted: WantedNode) -> Iterator[NodeAnswer]:
    del wanted
    match answer:
        case [0, _]:
            return
        case [int(status), str(line)]:
            yield NodeFault(line or f"ended with status {status}")
        case _:
            yield NodeUnseen("it did not end in its time")


def _nothing_of(answer: JSON, wanted: WantedNode) -> Iterable[NodeAnswer]:
    del answer, wanted
    return ()


def _nothing(host: object, wanted: object) -> Iterable[NodeAnswer]:
    del host, wanted
    return ()
