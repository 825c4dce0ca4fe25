"""Samples added up: shares, who stands still, who has the lock, bounds."""

from seawall.accounts.stacks.stack_groups import StackPlace
from seawall.accounts.stacks.stack_tally import Grouped, StackTally, grouped
from seawall.accounts.workloads import Workload
from seawall.readings.task_stacks import Stack, StackFrame, StackTask, TaskStacks

FAULT = (StackFrame("folio_wait_bit_common", None), StackFrame("filemap_fault", None))
FAULT_ELSEWHERE = (*FAULT, StackFrame("__do_fault", None))
RECLAIM = (StackFrame("shrink_lruvec", None), StackFrame("nvidia_ioctl", "nvidia"))
QUEUE = (StackFrame("vm_mmap_pgoff", None),)
SHOP = Workload(kind="container", name="shop/cart/app", cgroup="/kubepods/shop")
INNER = Workload(kind="cgroup", name="/kubepods/shop/inner", cgroup="/kubepods/shop/inner")


def task(
    tid: int, frames: Stack | None, *, pid: int | None = None, state: str = "D",
    turns: int | None = 1, start: int = 7, wchan: str = "",
) -> StackTask:  # fmt: skip
    why = "" if frames is not None else "refused"
    return StackTask(pid or tid, tid, f"t{tid}", state, 0, start, 0, 0, turns, frames, why, wchan)


def sample(*tasks: StackTask, left_out: int = 0) -> TaskStacks:
    return TaskStacks(
        tasks=tasks, threads=100, threads_left_out=left_out, processes_left_out=0,
        stacks_left_out=0, scan_seconds=0.01, is_hidden=False,
    )  # fmt: skip


def tally_of(*samples: TaskStacks) -> StackTally:
    tally = StackTally()
    for number, one in enumerate(samples):
        tally.add(one, 100.0 + 2 * number)
    return tally


def all_of(tally: StackTally) -> Grouped:
    return grouped(tally, lambda _: None, lambda _: True)


def test_shares_are_of_observations() -> None:
    found = all_of(
        tally_of(
            sample(task(1, FAULT), task(2, FAULT), task(3, RECLAIM, state="R")),
            sample(task(1, FAULT_ELSEWHERE), task(2, FAULT)),
            sample(),
        )
    )
    assert found.observations == 5
    fault, reclaim = found.groups
    assert (fault.place, fault.observations, fault.share) == (StackPlace("page_fault_disk"), 4, 0.8)
    assert (fault.samples, fault.blocked) == (2, 4)
    assert (fault.frames, fault.frames_observations) == (FAULT, 3)
    assert [(one.task.tid, one.observations) for one in fault.tasks] == [(1, 2), (2, 2)]
    assert (reclaim.share, reclaim.blocked, reclaim.drivers) == (0.2, 0, (("nvidia", 1),))
    assert sum(group.share for group in found.groups) == 1.0


def test_nothing_is_no_group() -> None:
    assert all_of(StackTally()) == Grouped((), 0)
    assert all_of(tally_of(sample(), sample())) == Grouped((), 0)


def test_who_had_no_cpu_stands_still_and_who_waits_anew_does_not() -> None:
    found = all_of(
        tally_of(
            *(sample(task(1, FAULT), task(2, FAULT, turns=n), task(3, FAULT, turns=None))
              for n in range(4))
        )
    )  # fmt: skip
    still = {one.task.tid: one.still_seconds for one in found.groups[0].tasks}
    assert still == {1: 6.0, 2: None, 3: None}


def test_still_counts_from_when_it_last_ran_and_only_to_the_end() -> None:
    late = tally_of(
        sample(task(1, FAULT, turns=1)), sample(task(1, FAULT, turns=2)),
        sample(task(1, FAULT, turns=2)), sample(task(1, FAULT, turns=2)),
    )  # fmt: skip
    assert all_of(late).groups[0].tasks[0].still_seconds == 4.0
    gone = tally_of(*(sample(task(1, FAULT)) for _ in range(3)), sample())
    assert all_of(gone).groups[0].tasks[0].still_seconds is None
    twice = tally_of(sample(task(1, FAULT)), sample(task(1, FAULT)))
    assert all_of(twice).groups[0].tasks[0].still_seconds is None


def test_who_stands_still_does_so_where_it_is_now() -> None:
    """Long in reclaim, and at last in a fault: reclaim does not hold it up."""
    ran = [sample(task(1, RECLAIM, turns=turns)) for turns in range(5)]
    found = all_of(tally_of(*ran, *(sample(task(1, FAULT, turns=9)) for _ in range(3))))
    still = {group.place.kind: group.tasks[0].still_seconds for group in found.groups}
    assert still == {"reclaim": None, "page_fault_disk": 4.0}


def test_what_is_not_told_of_others_is_not_missing_here() -> None:
    tally = tally_of(sample(task(1, (), state="R"), task(2, None), task(3, FAULT)))
    assert all_of(tally).untold == {"on_cpu": 1, "refused": 1}
    assert grouped(tally, {3: SHOP}.get, lambda who: who is SHOP).untold == {}


def test_a_tid_that_comes_again_is_another_thread() -> None:
    found = all_of(
        tally_of(*(sample(task(1, FAULT, start=start)) for start in (7, 7, 99)))
    )  # fmt: skip
    assert [one.observations for one in found.groups[0].tasks] == [2, 1]
    assert all(one.still_seconds is None for one in found.groups[0].tasks)


def test_the_holder_of_mmap_lock_is_another_thread_at_the_same_moment() -> None:
    found = all_of(
        tally_of(
            sample(task(11, FAULT, pid=10), task(12, QUEUE, pid=10), task(31, FAULT, pid=30)),
            # Alone, a thread that faults holds it for nobody.
            sample(task(12, FAULT, pid=10)),
        )
    )
    lock = next(group for group in found.groups if group.place.kind == "lock")
    assert lock.place == StackPlace("lock", "mmap_lock")
    assert [(one.task.tid, one.observations) for one in lock.holders] == [(11, 1)]


def test_a_single_thread_never_holds_what_it_waits_for() -> None:
    found = all_of(tally_of(sample(task(1, QUEUE)), sample(task(1, FAULT))))
    assert all(group.holders == () for group in found.groups)


def test_only_the_wanted_workload_and_what_is_in_it() -> None:
    tally = tally_of(sample(task(1, FAULT), task(2, FAULT), task(3, FAULT)))
    owners = {1: SHOP, 2: INNER}
    found = grouped(tally, owners.get, lambda owner: owner in (SHOP, INNER))
    assert found.observations == 2
    assert found.groups[0].share == 1.0
    assert [one.workload for one in found.groups[0].tasks] == [SHOP, INNER]
    none = grouped(tally, owners.get, lambda _: False)
    assert none == Grouped((), 0)


def test_what_was_not_told_is_counted_by_reason() -> None:
    tally = tally_of(
        sample(task(1, None), task(2, (), state="R"), task(3, FAULT), left_out=4),
        sample(task(1, None, wchan="balance_dirty_pages"), left_out=1),
    )
    assert tally.untold == {"refused": 2, "on_cpu": 1}
    assert tally.left_out["threads"] == 5
    kinds = {group.place.kind for group in all_of(tally).groups}
    assert kinds == {"unknown", "on_cpu", "page_fault_disk", "dirty_throttle"}


def test_a_thread_with_ever_new_stacks_is_bounded() -> None:
    tally = StackTally()
    for number in range(500):
        tally.add(sample(task(1, (*FAULT, StackFrame(f"f{number}", None)))), float(number))
    (group,) = all_of(tally).groups
    assert group.observations == 500
    assert len(tally.known[1, 7].places) <= 65
