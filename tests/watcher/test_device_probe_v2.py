"""A watch of devices on cgroup v2: real programs of this kernel, attached and taken away."""

import json
import shutil
import sys

import pytest
from tests.end_to_end.verbs import SOURCES, run
from tests.host import device_program

pytestmark = pytest.mark.system
SCRIPT = (
    'umount -l /sys/fs/cgroup/devices 2>/dev/null; cd "$1"; PYTHONPATH=src:. exec "$2" -m '
    "tests.watcher.v2_watch"
)


def test_a_program_that_comes_and_goes() -> None:
    if why := device_program.missing():
        pytest.skip(why)
    if shutil.which("unshare") is None:
        pytest.skip("no unshare: apt-get install util-linux")
    ran = run(["unshare", "-m", "sh", "-c", SCRIPT, "sh", str(SOURCES.parent), sys.executable])
    assert ran.status == 0, ran.err
    (unseen,), refused, again = map(json.loads, ran.out.splitlines())
    assert "with cgroup v2 nobody writes to a file" in unseen
    assert (refused["from"], refused["to"], refused["layer"]) == ("allowed", "EPERM", "kernel")
    assert refused["why"].startswith("device programs: got program ")
    assert refused["writers"] == []
    assert refused["lasted_seconds"] >= 0.29
    assert (again["to"], again["is_back"]) == ("allowed", True)
    # It counts from when the program was loaded, not from the look that found it 0.3 s later.
    assert again["lasted_seconds"] >= 0.29
    assert "EPERM for about 0." in again["words"]
