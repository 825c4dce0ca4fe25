"""Left behind by a job that ended: told.  What a running job may cause: never."""

from dataclasses import replace
from typing import Any

import pytest
from tests.readings.parser_samples import GUARD_STATUS

from seawall.accounts.slurm_health import SlurmHealth, judge
from seawall.host.host import Unread
from seawall.readings.guard_status import PATH, GuardStatus, parse
from seawall.slurm_node import JobProcesses, SlurmNodeLook
from seawall.slurm_paths import part_of

GIB = 1 << 30
STATUS = parse(GUARD_STATUS.encode() if isinstance(GUARD_STATUS, str) else GUARD_STATUS)
NOW = 1_000_000.0
NO_GUARD = Unread(PATH, "absent")


def guard(**changes: Any) -> GuardStatus:
    usual = {
        "unix_seconds": NOW - 1,
        "state": "peace",
        "residual_grown_bytes": 0,
        "mode": "observe",
    }
    return replace(STATUS, **(usual | changes))


def job(number: int, users: int, *, has_stepd: bool = True, uid: int = 1000) -> JobProcesses:
    part = part_of(f"/slurm/uid_{uid}/job_{number}")
    assert part
    return JobProcesses(part=part, users=users, has_stepd=has_stepd)


def seen(
    *jobs: JobProcesses, shm: dict[int, int] | None = None, uids: set[int] | None = None
) -> SlurmNodeLook:  # fmt: skip
    here = None if uids is None else frozenset(uids)
    return SlurmNodeLook(jobs=jobs, shm_bytes=shm or {}, uids=here)


def judged(
    look: SlurmNodeLook, status: GuardStatus | Unread | None = None,
    before: SlurmNodeLook | None = None,
) -> SlurmHealth:  # fmt: skip
    return judge(before or look, look, status or guard(), NOW, 64 * GIB)


def kinds(found: SlurmHealth) -> list[str]:
    return [problem.kind for problem in found.problems]


def test_a_node_with_a_job_and_one_without_are_well() -> None:
    for look in (seen(), seen(job(7, 12)), seen(job(7, 0, has_stepd=True), job(8, 3))):
        found = judged(look)
        assert (kinds(found), found.unseen, found.notes) == ([], (), ())


def test_processes_without_a_slurmstepd_are_left() -> None:
    found = judged(seen(job(7, 3, has_stepd=False), job(8, 2)))
    (problem,) = found.problems
    assert problem.words == "3 processes of job 7 of uid 1000 left: no slurmstepd is with it"


def test_a_step_that_begins_or_ends_between_two_looks_is_not_left() -> None:
    left, runs = seen(job(7, 3, has_stepd=False)), seen(job(7, 3))
    assert not kinds(judged(runs, before=left))
    assert not kinds(judged(left, before=runs))
    assert not kinds(judged(seen(), before=left))
    assert not kinds(judged(seen(job(7, 0, has_stepd=False))))


def test_shm_of_a_user_who_has_nothing_else_here() -> None:
    held = {1000: 2 * GIB, 1001: 2 * GIB, 1002: 1 << 20}
    found = judged(seen(shm=held, uids={0, 1001}))
    assert [problem.words for problem in found.problems] == [
        "2.0 GiB in /dev/shm of uid 1000, who has no job and no process here"
    ]


def test_shm_of_a_user_with_another_job_here_is_not_judged() -> None:
    """By his files alone nobody can tell which job left them."""
    look = seen(job(8, 0, uid=1000), shm={1000: 2 * GIB}, uids={0})
    assert not kinds(judged(look))
    assert not kinds(judged(seen(shm={1000: 2 * GIB}, uids=set()), before=seen(shm={}, uids=set())))


def test_uncounted_memory_is_a_leftover_only_where_no_job_runs() -> None:
    status = guard(residual_grown_bytes=8 * GIB)
    idle = judged(seen(), status)
    assert kinds(idle) == ["uncounted"]
    busy = judged(seen(job(7, 3)), status)
    assert (kinds(busy), len(busy.notes)) == ([], 1)
    ended = judged(seen(), status, before=seen(job(7, 3)))
    assert not kinds(ended), "a job that ends just now gives back yet"
    assert not kinds(judged(seen(), guard(residual_grown_bytes=1 * GIB)))


@pytest.mark.parametrize(
    "status",
    [
        NO_GUARD,
        guard(unix_seconds=NOW - 31, residual_grown_bytes=8 * GIB),
        guard(unix_seconds=NOW + 60, residual_grown_bytes=8 * GIB),  # the clock was set back
        guard(state="stopped", residual_grown_bytes=8 * GIB),
    ],
)
def test_a_page_that_is_not_of_now_is_no_evidence(status: GuardStatus | Unread) -> None:
    found = judged(seen(), status)
    assert not kinds(found)
    assert len(found.unseen) == 1


def test_a_guard_that_should_act_and_cannot() -> None:
    status = guard(mode="enforce", can_kill=False, can_kill_words="the self-test failed")
    assert kinds(judged(seen(), status)) == ["guard"]
    assert not kinds(judged(seen(), guard(mode="observe", can_kill=False)))
