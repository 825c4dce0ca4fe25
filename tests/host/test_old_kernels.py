"""A kernel before 5.6, or a sandbox: openat2 answers ENOSYS, and a device is tried all the same."""

import json
import os
from typing import Any

import pytest

from seawall.host import rooted
from seawall.host.device_access.process_handle import ProcessHandle
from seawall.host.device_access.trying import device_access

NO_SUCH_CALL = 100_000
PATHS = ["/dev/null", "/dev/nothing", "/dev/fd", "/dev/../dev/./zero"]
MAGIC = "/proc/self/exe"


def tried() -> Any:
    pid = os.getpid()
    target = [pid, ProcessHandle(pid).start_ticks(), [*PATHS, MAGIC]]
    told = device_access(json.dumps({"targets": [target], "opens": False}))
    assert isinstance(told, dict)
    (row,) = told["targets"].values()
    # Both refuse it, in words of their own (ELOOP, EXDEV).
    assert [one[1] > 0 and one[2] for one in row["tried"] if one[0] == MAGIC] in (["other"], [])
    return [one for one in row["tried"] if one[0] != MAGIC], row["problem"]


def test_walking_by_hand_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    before = tried()
    rows, problem = before
    if problem and problem[0] == "absent":
        pytest.skip("no cgroup hierarchy with devices is mounted: mount -t cgroup2 cgroup2 /mnt")
    assert rows[0][:5] == ["/dev/null", 0, "c", 1, 3]
    monkeypatch.setattr(rooted, "_SYS_OPENAT2", NO_SUCH_CALL)
    with pytest.raises(OSError, match="not implemented"):
        rooted.Rooted("/")._openat2("/dev/null", os.O_PATH)
    assert tried() == before
