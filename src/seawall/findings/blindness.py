# SPDX-License-Identifier: Apache-2.0
"""What could not be seen, why, and what would let it be seen.  Ends every view."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from seawall.host.host import BREAKS_OFF, HERE_ONLY, NOT_IN_REPORT, Unread
from seawall.words import first

if TYPE_CHECKING:  # a verb that reads a file alone has nothing of these
    from seawall.findings.finding import Judged
    from seawall.findings.rule import Rule
    from seawall.readings.snapshot import Snapshot

_PROVIDE: Final = {
    "no_answer": "nothing: that it does not answer is evidence by itself",
    "not_reached": "a longer --timeout",
    "not_captured": "capture the machine again with this version of seawall",
    "malformed": "report it with a capture: a kernel prints what we do not know",
    "too_big": "report it with a capture",
    "failed": "look at the path by hand",
    "bug": "a report with a bundle of this moment: seawall capture",
    "refused to root": "nothing: it is refused to root as well (another namespace, an LSM)",
    "absent": "a kernel or a setting that has it",
    "vanished": "look again: it went away while it was read",
}
# Not there, or gone by the time it was read: nothing that anyone could have seen.
_NOTHING_TO_SEE: Final = frozenset({"absent", "vanished"})
_PATHS_SHOWN: Final = 3
_OF_BOX: Final = "the black box "
_NOT_HELD: Final = (
    "the bundle does not hold it", BREAKS_OFF, NOT_IN_REPORT, f"{_OF_BOX}does not record it",
)  # fmt: skip
_WHILE_IT_LIVES: Final = "seawall why or capture on the machine itself, while it is up"
_WITHOUT_ROOT: Final = "seawall on the node itself, without --root: processes are asked, no files"
_TITLES_SHOWN: Final = 2
_JOBS_SHOWN: Final = 5
_NOT_COUNTED: Final = "no cgroup counts it: they have one in the freezer's tree alone"
_COUNTS_JOBS: Final = (
    "ConstrainRAMSpace=yes in cgroup.conf, or JobAcctGatherType=jobacct_gather/cgroup in slurm.conf"
)


@dataclass(frozen=True, slots=True)
class NotSeen:
    """One row of "Could not see"."""

    what: str
    why: str
    provide: str
    """What would let it be seen."""
    rules: int = 0
    """How many rules could not judge for want of it."""

    @property
    def is_hanging(self) -> bool:
        """It never answered: that is evidence by itself."""
        return self.provide == _PROVIDE["no_answer"]

    @property
    def kind(self) -> Literal["", "bug"]:
        """``bug``: a fault of seawall's own hides it, and nothing on this machine."""
        return "bug" if self.provide == _PROVIDE["bug"] else ""


def changeable(rows: Iterable[NotSeen]) -> list[NotSeen]:
    """Those that somebody can change, and those that hang; not what this kernel does not have
    or what is refused to root as well.
    """
    nobody = {_PROVIDE["absent"], _PROVIDE["refused to root"], ""}
    return [row for row in rows if row.provide not in nobody]


def not_seen(judged: "Iterable[Judged]", snapshots: "Sequence[Snapshot]") -> list[NotSeen]:
    """Blind rules first, grouped by their reason; then whatever else was not readable."""
    is_root = asked_by_root(snapshots)
    rows: dict[tuple[str, str], list[Judged]] = {}
    told: set[str] = set()
    for item in judged:
        if item.finding.verdict == "blind" and item.muted is None:
            reason, needs, paths = _blind_reason(item, is_root=is_root)
            rows.setdefault((reason, needs), []).append(item)
            told |= paths
    found = [
        NotSeen(_names(items), why, needs, len({i.id for i in items}))
        for (why, needs), items in rows.items()
    ]
    return (
        found + _unread_rows(snapshots, told) + _unseen_holders(snapshots)
        + _uncounted_jobs(snapshots)
    )  # fmt: skip


def _unseen_holders(snapshots: "Sequence[Snapshot]") -> list[NotSeen]:
    """What sources of claims could not see, where a rule asked them: of the last moment."""
    from seawall.accounts.claims.claims import Claims  # noqa: PLC0415 - of rules alone

    for snapshot in reversed(snapshots):
        for value in snapshot.values():
            if isinstance(value, Claims):
                return [NotSeen("holders", words, "") for words in value.unseen]
    return []


def unread_rows(snapshots: "Sequence[Snapshot]", more: Iterable[Unread] = ()) -> list[NotSeen]:
    """For verbs without rules: what of the topics they asked for was not readable, and of
    ``more``, which they asked themselves.
    """
    return _unread_rows(snapshots, set(), more) + _uncounted_jobs(snapshots)


def _uncounted_jobs(snapshots: "Sequence[Snapshot]") -> list[NotSeen]:
    """Slurm's jobs that no cgroup of memory's is made for: of the last moment."""
    from seawall.readings.slurm_jobs import SlurmJobs  # noqa: PLC0415 - where Workloads is

    for snapshot in reversed(snapshots):
        for value in snapshot.values():
            if isinstance(value, SlurmJobs) and value.uncounted:
                numbers = [job.job for job in value.uncounted]
                words = first(sorted(numbers, key=len), _JOBS_SHOWN)
                return [NotSeen(f"memory of Slurm jobs {words}", _NOT_COUNTED, _COUNTS_JOBS)]
    return []


def _names(items: "list[Judged]") -> str:
    """One or two rules by title; more of them by id, for titles would fill the screen."""
    items = list({item.id: item for item in items}.values())
    if len(items) > _TITLES_SHOWN:
        return f"{len(items)} rules ({', '.join(item.id for item in items)})"
    return "; ".join(f"{item.id} {item.title}" for item in items)


def asked_by_root(snapshots: "Sequence[Snapshot]") -> bool:
    """Whether nobody could have had more rights."""
    from seawall.readings.kernel import Kernel  # noqa: PLC0415 - see above

    kernel = snapshots[0].get(Kernel) if snapshots else None
    if not isinstance(kernel, Kernel) or kernel.reader_capabilities is None:
        return False
    return {"DAC_READ_SEARCH", "SYS_PTRACE"} <= set(kernel.reader_capabilities)


def _blind_reason(item: "Judged", *, is_root: bool) -> tuple[str, str, set[str]]:
    missing = item.finding.unread
    if not missing:
        return item.finding.headline, _provide_of(item), set()
    words = ", ".join(dict.fromkeys(f"{m.path}: {m.detail or m.why}" for m in missing))
    told = {m.path for m in missing}
    if bug := next((m for m in missing if m.why == "bug"), None):
        return bug.detail, _PROVIDE["bug"], told
    if any(m.detail.endswith(BREAKS_OFF) for m in missing):
        return "the bundle breaks off before what it takes", _PROVIDE["not_captured"], told
    # What was refused or not reached explains more than what this kernel never had.
    main = next((m for m in missing if m.why != "absent"), missing[0])
    if main.detail.startswith("a rate needs") and all(m.detail == main.detail for m in missing):
        return main.detail, "two moments: a live machine, or a bundle by seawall capture", set()
    if main.detail.startswith("the window is shorter"):
        return main.detail, "a longer --timeout, or capture --for", set()
    if main.detail == HERE_ONLY:  # no right that the caller could have helps
        return words, _WITHOUT_ROOT, told
    if main.why == "absent":
        return words, _provide_of(item), told
    return words, provide(main, is_root=is_root), told


def _provide_of(item: "Judged") -> str:
    from seawall.findings.rule import FOUND, PROVIDE_DEFAULT  # noqa: PLC0415 - the registry is filled by then

    known: Rule | None = FOUND.get(item.id)
    is_special = known is not None and known.provide != PROVIDE_DEFAULT
    return known.provide if known and is_special else _PROVIDE["absent"]


def _unread_rows(
    snapshots: "Sequence[Snapshot]", told: set[str], more: Iterable[Unread] = ()
) -> list[NotSeen]:
    is_root = asked_by_root(snapshots)
    groups: dict[tuple[str, str, str], list[str]] = {}
    for unread in chain(_all_unread(snapshots), more):
        if unread.why in _NOTHING_TO_SEE or unread.path in told:
            continue
        told.add(unread.path)
        # What a bundle does not hold is one fact, however many questions it is.
        place = "" if unread.why == "not_captured" else _place(unread.path)
        reason = unread.detail or unread.why
        reason = next((words for words in _NOT_HELD if reason.endswith(words)), reason)
        groups.setdefault((place, reason, provide(unread, is_root=is_root)), []).append(unread.path)
    rows = []
    for (place, reason, needs), paths in groups.items():
        # A lock names its process: each is evidence of its own.
        what = ", ".join(paths[:_PATHS_SHOWN])
        if len(paths) > _PATHS_SHOWN and not place:
            what = f"{what} and {len(paths) - _PATHS_SHOWN} more"
        elif len(paths) > _PATHS_SHOWN:
            what = f"{place} ({len(paths)} of them, first {paths[0]})"
        rows.append(NotSeen(what, reason, needs))
    return rows


def provide(unread: Unread, *, is_root: bool) -> str:
    """What would give this answer."""
    if unread.why == "not_captured" and _OF_BOX in unread.detail:
        return _WHILE_IT_LIVES
    if unread.why != "refused":
        return _PROVIDE[unread.why]
    if is_root:
        return _PROVIDE["refused to root"]
    if unread.path == "/dev/kmsg":
        return "root on the host, or CAP_SYSLOG (kernel.dmesg_restrict)"
    # proc(5): files have owners and modes, and other users' processes want ptrace rights too.
    more = " and CAP_SYS_PTRACE" if unread.path[6:7].isdecimal() else ""
    return f"root on the host, or CAP_DAC_READ_SEARCH{more}"


def _place(path: str) -> str:
    """Paths of the same kind share it: every /proc/PID/io is ``/proc/*/io``."""
    parts = path.split("/")
    if len(parts) > 3 and parts[1] == "proc" and parts[2].isdecimal():
        return "/".join(["", "proc", "*", *parts[3:]])
    if path.startswith("/sys/fs/cgroup/"):
        return "/sys/fs/cgroup/.../" + parts[-1]
    return path


def _all_unread(snapshots: "Iterable[Snapshot]") -> Iterable[Unread]:
    for snapshot in snapshots:
        for value in snapshot.values():
            if isinstance(value, Unread):
                yield value
            else:
                yield from _inner(value)


def _inner(value: Any) -> Iterable[Unread]:
    """A topic tells in ``unread`` which of its parts were missing."""
    parts = getattr(value, "unread", ())
    if isinstance(parts, tuple):
        yield from (part for part in parts if isinstance(part, Unread))
