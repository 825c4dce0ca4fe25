"""When descriptors are few: as many as the machine allows, and a guard that says what it lacks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.actions.descriptors import few_free

from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.orders import Mounts, Order, Target
from seawall.guard.self_test import SelfTest

CODE = """
import resource, sys
from seawall.guard.launcher import allow_many_files
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
allow_many_files()
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize(
    ("before", "after"), [((256, 4096), (4096, 4096)), ((4096, 4096), (4096, 4096))]
)
def test_the_limit_is_raised_to_what_is_allowed(
    before: tuple[int, int], after: tuple[int, int]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE, *map(str, before)], capture_output=True, text=True, check=True
    )
    assert tuple(map(int, done.stdout.split())) == after


def test_a_child_that_cannot_be_seen_ends_the_test_and_not_the_guard(tmp_path: Path) -> None:
    mounts = Mounts(str(tmp_path), 2, None, None)
    hands = Executor(mounts, ("/x",), Journal(str(tmp_path / "guard.undo")))
    test = SelfTest(hands, None, mounts, "/x")
    test._folder = os.open(tmp_path, os.O_PATH)
    test._order = Order("self-test", "kill", Target("/x", 1, "self-test"), "self_test")
    test._began = 1.0
    with few_free(0):
        words = test.poll(2.0)
    test.close()
    assert words == "CANNOT KILL: its child cannot be seen: refused: Too many open files"
    assert not test.is_waiting
