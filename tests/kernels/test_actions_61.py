"""Orders on cgroup version 2: Debian's 6.1 in QEMU.  Times are those of an emulated CPU."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.kernels.vm import Image, run_job

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
MIB = 1 << 20
JOB = """
python3.11 act_on_v2.py $OUT/found.json > $OUT/log.txt 2>&1
"""


@pytest.fixture(scope="module")
def found(image: Image, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    files = {
        "act_on_v2.py": (HERE / "guest/act_on_v2.py").read_bytes(),
        "fuse_server.py": (HERE.parent / "end_to_end/fuse_server.py").read_bytes(),
    }
    vm = run_job(image, JOB, tmp_path_factory.mktemp("job"), files=files, memory_mib=1024)
    assert vm.text("log.txt") == "mounted\n"  # the silent filesystem
    document = json.loads(vm.text("found.json"))
    assert isinstance(document, dict)
    return document


def test_trees(found: dict[str, Any]) -> None:
    assert found["mounts"] == ["/sys/fs/cgroup", 2, None, "/sys/fs/cgroup"]


@pytest.mark.parametrize("name", ["at_once", "before_514"])
def test_200_that_fork(found: dict[str, Any], name: str) -> None:
    """By cgroup.kill, and standing still with a pidfd for each."""
    row = found[name]
    assert (row["is_done"], row["problem"]) == (True, "")
    assert row["processes"] >= 200
    assert row["is_empty"]
    assert row["freeze"] == "0"
    assert row["first_action_seconds"] < 0.02


def test_freeze_until_its_deadline(found: dict[str, Any]) -> None:
    row = found["freeze"]
    assert (row["is_done"], row["problem"]) == (True, "")
    assert "frozen 1" in row["events"]
    assert (row["kept"], row["after"]) == ("1", "0")
    assert row["words"] == ["/pods/freeze: thawed, its time of standing still was over"]


def test_frozen_by_somebody_else(found: dict[str, Any]) -> None:
    row = found["frozen_by_other"]
    assert (row["is_done"], row["after"]) == (False, "1")
    assert row["problem"] == "somebody else froze it before"
    assert found["kill_frozen_by_other"]["is_done"]
    assert found["kill_frozen_by_other"]["left"] == 0


def test_clamp_acts_below_what_is_counted(found: dict[str, Any]) -> None:
    """120 MiB of anonymous memory under 60 MiB: the kernel's own killer takes it."""
    rows = found["clamp"]
    assert rows["acts"]["is_done"], rows["acts"]
    assert rows["acts"]["old_value"] == str(300 * MIB)
    assert rows["acts"]["seconds"] < 0.1
    assert found["clamped_to"] == str(60 * MIB)
    assert found["clamp_status"] == -9
    assert rows["unclamp"]["is_done"]
    assert found["unclamped_to"] == str(300 * MIB)


def test_a_limit_lowered_twice_comes_back_to_the_first(found: dict[str, Any]) -> None:
    assert found["clamp"]["tighter"]["is_done"], found["clamp"]["tighter"]
    assert found["clamp"]["tighter"]["old_value"] == str(300 * MIB)
    assert found["tightened_to"] == str(20 * MIB)
    assert found["tightened_status"] == -9
    assert found["tightened_words"] == []
    assert found["unclamped_to"] == str(300 * MIB)


def test_clamp_is_refused_where_it_would_not_act(found: dict[str, Any]) -> None:
    rows = found["clamp"]
    assert "a limit of 200 MiB would not act: its cgroup counts 12" in rows["above"]["problem"]
    assert rows["higher"]["problem"] == "its limit is 300 MiB, which is not more"
    assert "the largest of its 2 processes alone" in rows["two"]["problem"]
    assert not any(rows[name]["is_done"] for name in ("above", "higher", "two"))


def test_clamp_of_several_that_go_together(found: dict[str, Any]) -> None:
    assert found["clamp"]["as_one"]["is_done"], found["clamp"]["as_one"]
    assert found["both_ended"] == [-9, -9]


def test_a_limit_that_somebody_changed_since_stays(found: dict[str, Any]) -> None:
    row = found["clamp"]["changed"]
    assert not row["is_done"]
    assert row["problem"] == "somebody changed memory.max since, it is left so"
    assert found["changed_to"] == str(77 * MIB)
    assert found["journal_after"] == 0


def test_signals_are_owned_until_they_are_told(found: dict[str, Any]) -> None:
    """Two swarms and one that somebody else froze; no change of a limit is left beside them."""
    assert found["untold"] == ["SIGKILL"] * 3


def test_after_a_guard_that_was_killed(found: dict[str, Any]) -> None:
    left = found["left"]
    assert left["before"] == ["1", str(50 * MIB)]
    assert left["after"] == ["0", str(300 * MIB)]
    assert left["words"] == [
        "/sys/fs/cgroup/pods/left: thawed",
        f"/sys/fs/cgroup/pods/left: memory.max is {300 * MIB} again",
    ]


def test_a_victim_stuck_in_the_kernel_gives_its_memory_back(found: dict[str, Any]) -> None:
    row = found["stuck"]
    # A read past the page cache is not killable once it was taken by the server.
    assert (row["is_done"], row["processes"], row["left"]) == (True, 1, 1)
    assert row["seconds"] < 1
    assert row["before"] > 150 * MIB
    assert row["after"] < 50 * MIB
    assert "populated 1" in row["populated"]
    assert "/pods/stuck: all are gone after" in found["stuck_words"][0]


def test_it_proves_that_it_can(found: dict[str, Any]) -> None:
    problem, words, left = found["self_test"]
    assert (problem, left) == ("", 0)
    assert words.startswith("can kill: proved 0 s ago in ")
    assert found["undone"] == []
