"""/proc/meminfo that fails in the middle of a shortage: what it said before is no evidence."""

import os
import shutil
from pathlib import Path

import pytest
from tests.guard.judge_scene import CALM, hog, judge_of, scene, short, web
from tests.guard.sense_trees import FakeTree, container
from tests.readings.kernel_files import DEBIAN_6_1, FILES

from seawall.actions.orders import Mounts
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings

UNSEEN = CALM._replace(total_bytes=0, free_bytes=0, headroom_bytes=0, residual_bytes=None)


@pytest.fixture
def sense(tmp_path: Path) -> Sense:
    """On a node that is short of free pages."""
    tree = FakeTree(tmp_path / "tree", 2)
    tree.make(container(1))
    proc = shutil.copytree(FILES / DEBIAN_6_1 / "proc", tmp_path / "proc", symlinks=True)
    zones = (proc / "zoneinfo").read_text().splitlines()
    words = ["  pages free     1" if "pages free" in line else line for line in zones]
    (proc / "zoneinfo").write_text("\n".join(words) + "\n")
    made = Sense(
        Settings(), Mounts(str(tree.mount), 2), "/", proc=str(proc), sys=str(tmp_path / "no-sys")
    )
    made.open()
    return made


def fail(fd: int) -> int:
    """From now on EIO, from a file whose first page nobody has (proc_mem of fs/proc/base.c); a copy
    of the descriptor before.
    """
    kept = os.dup(fd)
    broken = os.open("/proc/self/mem", os.O_RDONLY)
    os.dup2(broken, fd)
    os.close(broken)
    return kept


def test_what_meminfo_said_before_is_not_said_again(sense: Sense, tmp_path: Path) -> None:
    before = sense.look(1.0)
    assert before.is_seen
    assert before.is_min
    fd = sense.memory._file.fd
    kept = fail(fd)
    node = sense.look(2.0)
    assert (node.is_seen, node.is_min, node.is_low) == (False, False, False)
    assert (node.headroom_bytes, node.residual_bytes) == (0, None)
    assert node.mem_total_bytes == before.mem_total_bytes  # by which others are measured
    assert f"{tmp_path}/proc/meminfo: Input/output error" in sense.blind
    os.dup2(kept, fd)
    os.close(kept)
    again = sense.look(3.0)
    assert again.headroom_bytes == before.headroom_bytes
    assert not any("meminfo: Input" in words for words in sense.blind)
    sense.close()


def test_watermarks_that_cannot_be_read_prove_no_shortage(sense: Sense) -> None:
    assert sense.look(1.0).is_min
    os.close(fail(sense.headroom.zones._file.fd))
    node = sense.look(1.0 + 60.0)  # in peace it is read now and then
    assert (node.is_seen, node.is_min, node.is_low) == (True, False, False)
    assert any("zoneinfo: Input/output error" in words for words in sense.blind)
    sense.close()


def test_whoever_cannot_see_the_node_kills_nobody() -> None:
    """And is as it was when it sees again."""
    judge = judge_of()
    groups = scene(hog(), web())
    judge.step(CALM._replace(seconds=1000.0), groups)
    for tick in range(1, 40):
        assert judge.step(UNSEEN._replace(seconds=1000.0 + tick / 10), groups) is None
        assert judge.state() == "blind"
    told = [judge.step(short(1004.0 + tick / 10), groups) for tick in range(5)]
    orders = [order for verdict in told if verdict for order in verdict.orders]
    assert {order.target.path for order in orders} == {hog().path}
