"""Who only observes says of a clamp what who acts would say; and writes nothing."""

import os
from pathlib import Path

import pytest
from tests.actions.descriptors import no_descriptors_left  # noqa: F401 - around each test
from tests.actions.test_order_of_writes import LOWERED, VERSION_2, container, hands, lower, order

from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.orders import Mounts, Outcome
from seawall.words import size

ALONE = {"memory.oom.group": "0\n", "cgroup.procs": "7\n8\n9\n"}
WOULD_LEAVE_TWO = (
    "the kernel would end the largest of its 3 processes alone (memory.oom.group is 0)"
)


def observed(mounts: Mounts, limit_bytes: int | None = LOWERED) -> Outcome:
    observer = Observer(mounts, ("/c",), Journal(f"{mounts.memory}/observer.undo"))
    observer.prepare()
    return observer.perform(order(mounts, "clamp", limit_bytes))


def states(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What is in each file, and when it was written last."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize(
    ("version", "changed", "limit_bytes", "words"),
    [
        (1, {}, LOWERED, "cgroup v1 answers a limit below what is used with EBUSY"),
        (2, {}, None, "no limit was told"),
        (2, {"memory.max": "30000000\n"}, LOWERED,
         f"its limit is {size(30000000)}, which is not more"),
        (2, {"memory.current": "4096\n"}, LOWERED,
         f"a limit of {size(LOWERED)} would not act: its cgroup counts {size(4096)}"),
        (2, ALONE, LOWERED, WOULD_LEAVE_TWO),
    ],
    ids=["version 1", "no limit", "lower already", "less is counted", "several processes"],
)  # fmt: skip
def test_what_would_be_refused_is_not_told_as_what_would_be_done(
    tmp_path: Path, version: int, changed: dict[str, str], limit_bytes: int | None, words: str
) -> None:
    container(tmp_path, {**VERSION_2, **changed})
    mounts = Mounts(str(tmp_path), version, None, str(tmp_path))
    before = states(tmp_path)
    outcome = observed(mounts, limit_bytes)
    assert (outcome.is_observed, outcome.is_done, outcome.problem) == (True, False, words)
    assert (outcome.processes, outcome.first_action_seconds) == (0, 0.0)
    assert states(tmp_path) == before
    done = hands(mounts, tmp_path).perform(order(mounts, "clamp", limit_bytes))
    assert (done.is_done, done.problem) == (outcome.is_done, outcome.problem)


def test_where_the_memory_controller_is_not_on(tmp_path: Path) -> None:
    place = container(tmp_path, VERSION_2)
    (place / "memory.max").unlink()
    mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
    outcome = observed(mounts)
    assert not outcome.is_done
    assert outcome.problem.startswith("it has no memory.max")
    done = hands(mounts, tmp_path).perform(order(mounts, "clamp", LOWERED))
    assert done.problem == outcome.problem


@pytest.mark.parametrize("changed", [{}, {**ALONE, "memory.oom.group": "1\n"}, {
    **ALONE, "cgroup.procs": "7\n"
}], ids=["nobody listed", "ended as a whole", "one process"])  # fmt: skip
def test_what_would_be_done_is_told_and_nothing_is_written(
    tmp_path: Path, changed: dict[str, str]
) -> None:
    container(tmp_path, {**VERSION_2, **changed})
    mounts = Mounts(str(tmp_path), 2, None, str(tmp_path))
    before = states(tmp_path)
    outcome = observed(mounts)
    assert (outcome.is_observed, outcome.is_done, outcome.problem) == (True, True, "")
    assert states(tmp_path) == before
    assert not os.path.exists(tmp_path / "observer.undo")
    lower(hands(mounts, tmp_path), mounts)  # and it is done
