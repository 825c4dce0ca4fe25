# SPDX-License-Identifier: Apache-2.0
"""What ``seawall stacks`` could not see, and what would let it be seen."""

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.readings.sysrq_backtraces import FILES
from seawall.readings.task_stacks import PROBE
from seawall.words import count

_CAPABILITIES: Final = ("SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH")
# Unwinds a task without looking whether it is on a CPU (arch/arm64/kernel/stacktrace.c).
_STALE_ON: Final = ("aarch64", "arm64")


class Missing(NamedTuple):
    """What the samples say of it."""

    untold: Counter[str]
    left_out: Counter[str]
    unread: tuple[Unread, ...]
    is_hidden: bool
    has_cpus: bool


def unseen(missing: Missing, last: Snapshot) -> Iterator[NotSeen]:
    """Rows for the end of the page."""
    kernel = last.get(Kernel)
    yield from _stacks(missing.untold, kernel)
    if missing.untold["on_cpu"] and not missing.has_cpus:
        yield NotSeen(
            f"where {_observations(missing.untold['on_cpu'])} on a CPU were",
            "/proc has no stack of a task while it runs",
            "--sysrq (root): the kernel prints where its CPUs are",
        )
    if missing.is_hidden:
        yield NotSeen("processes of other users", "/proc shows no pid 1 (hidepid)", "root")
    yield from _left_out(missing.left_out)
    if not isinstance(kernel, Unread) and kernel.machine in _STALE_ON:
        yield NotSeen(
            "whether the stack of a task in state R is of now",
            "this architecture shows the last wait of a task that runs",
            "--sysrq; stacks in state D are of now",
        )
    others = [unread for unread in missing.unread if unread.path != FILES]
    if len(others) < len(missing.unread):
        refusal = next(unread for unread in missing.unread if unread.path == FILES)
        yield NotSeen(
            "where the CPUs are (sysrq)",
            f"{refusal.path}: {refusal.detail or refusal.why}",
            "root on the host itself (a container's /proc does not allow it), CONFIG_MAGIC_SYSRQ",
        )
    yield from _samples([unread for unread in others if unread.path == PROBE])
    yield from unread_rows([last], others)


def _samples(unread: list[Unread]) -> Iterator[NotSeen]:
    """Why there is none, or not one more."""
    provided = {
        "absent": "no --root: the machine itself, in its own pid namespace (hostPID)",
        "not_captured": "the machine itself, or a bundle that this version captured there",
    }
    for one in unread:
        if one.why in provided:
            yield NotSeen("kernel stacks", one.detail, provided[one.why])
            return


def _stacks(untold: Counter[str], kernel: Kernel | Unread) -> Iterator[NotSeen]:
    if untold["refused"]:
        may = () if isinstance(kernel, Unread) else kernel.reader_capabilities or ()
        provide = f"root on the host, or CAP_{', CAP_'.join(_CAPABILITIES)}"
        if set(_CAPABILITIES) <= set(may):
            provide = "nothing: root is refused too (a task that was ending, a namespace, an LSM)"
        yield _row(untold["refused"], "/proc/PID/stack is refused", provide)
    if untold["absent"]:
        words = "this kernel has no /proc/PID/stack"
        yield _row(untold["absent"], words, "a kernel with CONFIG_STACKTRACE; --sysrq")
    if untold["no_answer"]:
        words = "reading it waits: the task is in execve, or this reader was too slow"
        yield _row(untold["no_answer"], words, "nothing: look again")


def _row(times: int, why: str, provide: str) -> NotSeen:
    return NotSeen(f"the stacks of {_observations(times)}", why, provide)


def _observations(times: int) -> str:
    return "1 observation" if times == 1 else f"{count(times)} observations"


def _left_out(left_out: Counter[str]) -> Iterator[NotSeen]:
    parts = [f"{count(n)} {name}" for name, n in sorted(left_out.items()) if n]
    if parts:
        yield NotSeen(
            f"all together {', '.join(parts)}",
            "the time or the room of a sample was over; the next one begins where it ended",
            "a longer --for: shares come right over several samples",
        )
