"""``seawall cache`` on Debian's 6.1, which has no cachestat: mincore gives the same figures."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.end_to_end.cache_verb import SCHEMA
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(900)]
PAGE = 4096

KEEP = b"""
import os, sys
path, pages, kept = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with open(path, "wb") as file:
    file.write(os.urandom(pages * 4096))
    os.fsync(file.fileno())
fd = os.open(path, os.O_RDONLY)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
for page in range(kept):
    os.pread(fd, 1, page * 4096)
"""
MAP = b"""
import mmap, sys, time
with open(sys.argv[1], "rb") as file:
    held = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
bytes(held)
print("held", flush=True)
time.sleep(600)
"""
ADVICE = b"""
import json, sys
lines = [words for words in json.load(open(sys.argv[1]))["advice"] if "echo " in words]
print("echo " + lines[0].partition("echo ")[2])
"""
JOB = r"""
at=/root/cache && mkdir $at
mkdir $at/top $at/low $at/up $at/work $at/merged || exit 1
for line in "top/whole 700 700" "top/part 600 123" "top/none 50 0" "low/program 64 64"; do
    python3.11 keep.py $at/$line
done
seawall cache --json $at/top > $OUT/top.json 2> $OUT/top.err
mount -t overlay overlay -o lowerdir=$at/low,upperdir=$at/up,workdir=$at/work $at/merged
python3.11 map.py $at/merged/program > $OUT/mapped & pid=$!
sleep 3
seawall cache --json --top 100000 --pid $pid > $OUT/pid.json 2> $OUT/pid.err
seawall cache > $OUT/node.txt 2>&1
group=/sys/fs/cgroup/writer
mkdir $group
(echo 0 > $group/cgroup.procs; python3.11 keep.py $at/written 5000 5000; exec sleep 600) &
sleep 4
seawall cache --json /writer > $OUT/writer.json 2> $OUT/writer.err
cat $group/memory.current > $OUT/before
python3.11 advice.py $OUT/writer.json > $OUT/command
sh $OUT/command; echo $? > $OUT/status
cat $group/memory.current > $OUT/after
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    files = {"keep.py": KEEP, "map.py": MAP, "advice.py": ADVICE}
    return run_job(image, JOB, tmp_path_factory.mktemp("job"), files=files, memory_mib=1024)


def document(node: Outcome, name: str) -> dict[str, Any]:
    page = json.loads(node.text(name))
    jsonschema.validate(page, SCHEMA)
    assert isinstance(page, dict)
    return page


def test_pages_by_mincore(node: Outcome) -> None:
    page = document(node, "top.json")
    rows = {row["path"].rpartition("/")[2]: row for row in page["files"]}
    assert rows["whole"]["cached_bytes"] == 700 * PAGE
    assert rows["part"]["cached_bytes"] == 123 * PAGE
    assert "none" not in rows or rows["none"]["cached_bytes"] == 0
    assert page["total_cached_bytes"] == 823 * PAGE
    assert page["totals"]["files"] == page["totals"]["mincore_files"] == 3
    for row in rows.values():
        assert row["method"] == "mincore"
        assert {"dirty_bytes", "writeback_bytes", "evicted_bytes"} <= set(row["unread"])


def test_overlay_of_a_process(node: Outcome) -> None:
    page = document(node, "pid.json")
    row = next(row for row in page["files"] if row["path"] == "/root/cache/merged/program")
    assert row["host_path"] == "/root/cache/low/program"
    assert row["cached_bytes"] == 64 * PAGE
    assert row["is_mapped"]


def test_text_says_that_it_is_mincore(node: Outcome) -> None:
    text = " ".join(node.text("node.txt").split())
    assert "by mincore, so no dirty or evicted pages" in text
    assert "0 B dirty" not in text


def test_memory_reclaim_of_one_cgroup(node: Outcome) -> None:
    """The very line that is printed, on cgroup version 2."""
    page = document(node, "writer.json")
    assert page["scope"] == {"kind": "workload", "name": "/writer"}
    assert "/sys/fs/cgroup/writer/memory.reclaim" in node.text("command")
    before, after = int(node.text("before")), int(node.text("after"))
    assert node.text("status").strip() == "0"
    assert before > 5000 * PAGE
    assert after < before - 0.4 * 5000 * PAGE


# --- a daemon that reads its own code back ----------------------------------------------

KUBELET = b"""
import runpy, sys
with open("/proc/self/comm", "w") as comm:
    comm.write("kubelet")
sys.argv = ["thrash.py", "walk", "/opt/text", "8"]
runpy.run_path("thrash.py", run_name="__main__")
"""
DAEMON_JOB = r"""
printf '[SW119.thresholds]\nyoung_seconds = 1\n' > rules.toml
check() {
    seawall check SW119 --json --timeout 20 --rules rules.toml > $OUT/$1.json 2> $OUT/$1.err
}
dd if=/dev/urandom of=/opt/text bs=1M count=96 2> /dev/null; sync
python3.11 kubelet.py &
sleep 4
check calm
python3.11 thrash.py hold 40 &
sleep 15
check short1
check short2
"""


def test_code_of_a_daemon_is_pushed_out(image: Image, tmp_path: Path) -> None:
    """Its text is larger than what is left; with room it is quiet, without it fires."""
    program = Path(__file__).with_name("guest") / "thrash.py"
    files = {"thrash.py": program.read_bytes(), "kubelet.py": KUBELET}
    node = run_job(image, DAEMON_JOB, tmp_path, files=files, disk_iops=2000)
    (calm,) = json.loads(node.text("calm.json"))["findings"]
    assert calm["verdict"] == "quiet", calm
    assert "1 looked at" in calm["headline"]
    found = [json.loads(node.text(f"short{n}.json"))["findings"][0] for n in (1, 2)]
    assert any(
        one["verdict"] == "fires" and "kubelet waits for its own code" in one["headline"]
        for one in found
    ), found
