"""The lab's incidents on Debian's 6.1 under cgroup v2, below a pod's cgroup, and what `why` says
on one screen of what was captured while each went on: the right rule, its severity, the lab's
cgroup, first.  Captured, for `why` takes an emulated node most of a minute; the bundle is
judged here, twice: as text and as JSON.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.first_screen import COLUMNS, FirstScreen, first_screen
from tests.end_to_end.verbs import run, seawall
from tests.kernels.vm import Image, Outcome, run_job

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(1300)]
RING = ["ring", 0, [65536, 1536, 2048], None]
"""96 MiB."""

JOB = r"""
insmod $JOB/af_packet_diag.ko
cd /sys/fs/cgroup
pod=kubepods/burstable/pod2222beef-2222-4333-8444-555555555555
for folder in kubepods kubepods/burstable $pod $pod/host; do
    mkdir $folder; echo "+memory +pids +io" > $(dirname $folder)/cgroup.subtree_control
done
rmdir $pod/host; echo "+memory +pids +io" > $pod/cgroup.subtree_control
lab_of() { ls $pod | grep seawall-lab- | head -1; }
until_is() { tries=0; until eval "$1" || [ $((tries += 1)) -gt 200 ]; do sleep 0.3; done; }
look() { seawall capture --for 8 --timeout 90 -o $OUT/$1.tgz > $OUT/$1.out 2> $OUT/$1.err; }
incident() { name=$1 ready=$2; shift 2; echo "== $name"
    seawall lab "$@" --for 240 --parent /$pod --json > $OUT/$name.lab 2> $OUT/$name.lab-err &
    until_is '[ -n "$(lab_of)" ]'; folder=$pod/$(lab_of); basename $folder > $OUT/$name.cgroup
    until_is "$ready"; look $name
    kill -INT $(basename $folder | cut -d- -f3); wait; }
kills='[ "$(grep -w oom_kill $folder/memory.events | cut -d" " -f2)" -gt 0 ]'
incident hog "$kills" hog --size 96MiB --limit 48MiB --step 24MiB --respawn
incident swarm "$kills" swarm --processes 16 --each 4MiB --limit 48MiB --respawn
incident thrash '[ "$(grep pgmajfault $folder/memory.stat | cut -d" " -f2)" -gt 600 ]' \
    thrash --programs 12 --code 4MiB --limit 32MiB --iops 300
incident fill '[ "$(cat $folder/memory.current)" -gt 64000000 ]' fill --size 128MiB --limit 64MiB
sleep 3
incident rings 'sleep 3' rings --size 192MiB --limit 64MiB --rate 0
echo "== host"
mkdir $pod/host; echo 64M > $pod/host/memory.max
(cat $JOB/ring; sleep 200) | sh -c "echo 0 > $pod/host/cgroup.procs
    exec python3.11 $JOB/ring_holder.py" > /run/host.out &
until_is 'grep -q . /run/host.out'; look host
kill -9 $(cat $pod/host/cgroup.procs)
echo "== done"
"""


@pytest.fixture(scope="module")
def node(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    home = Path("/lib/modules") / Path(image.kernel).name.removeprefix("vmlinuz-")
    files = {
        "ring": json.dumps(RING).encode() + b"\n",
        "ring_holder.py": (Path(__file__).parents[1] / "end_to_end/ring_holder.py").read_bytes(),
        "af_packet_diag.ko": (home / "kernel/net/packet/af_packet_diag.ko").read_bytes(),
    }
    folder = tmp_path_factory.mktemp("screens")
    return run_job(image, JOB, folder, files=files, memory_mib=1024, timeout_seconds=600)


def screen_of(node: Outcome, name: str, folder: Path, cgroup: str = "") -> FirstScreen:
    assert f"{name}.tgz" in node.files, node.text(f"{name}.err")
    (bundle := folder / f"{name}.tgz").write_bytes(node.files[f"{name}.tgz"])
    words = ["why", "--from", str(bundle)]
    page: dict[str, Any] = seawall(*words, "--json").answered().document
    answer = run(["env", f"COLUMNS={COLUMNS}", sys.executable, "-m", "seawall", *words])
    text = answer.answered().text
    return first_screen(page, text, cgroup or node.text(f"{name}.cgroup").strip())


@pytest.mark.parametrize("name", ["hog", "swarm"])
def test_kills_stand_first(node: Outcome, name: str, tmp_path: Path) -> None:
    screen = screen_of(node, name, tmp_path)
    severity = screen.of("SW207")["severity"]
    assert severity in ("critical", "warning"), "as often as the machine lets them die"
    screen.assert_stands_first("SW207", severity)
    assert "OOM-killed" in screen.first()
    assert "its limit of 48.0 MiB" in screen.first()


def test_a_thrash_stands_first_and_is_never_called_harmless(node: Outcome, tmp_path: Path) -> None:
    screen = screen_of(node, "thrash", tmp_path)
    screen.assert_stands_first("SW212", "critical")
    assert "of its time is lost" in screen.first()
    assert "not a leak" not in screen.text
    assert "nothing has to be done" not in screen.text
    assert not [r for r in screen.firing if r["id"] == "SW201" and screen.cgroup in r["workload"]]


def test_a_fill_is_harmless_cache(node: Outcome, tmp_path: Path) -> None:
    screen = screen_of(node, "fill", tmp_path)
    about = [row for row in screen.firing if screen.cgroup in str(row["workload"])]
    assert [row["id"] for row in about] == ["SW201"]
    assert about[0]["severity"] == "info"
    assert {row["severity"] for row in screen.firing} == {"info"}
    assert screen.first().startswith("INFO")
    assert "not a leak [SW201]" in screen.first()


def test_rings_in_a_network_of_their_own_are_over_the_limit(node: Outcome, tmp_path: Path) -> None:
    screen = screen_of(node, "rings", tmp_path)
    screen.assert_stands_first("SW211", "critical")
    assert "limit 64.0 MiB" in screen.first()
    assert "192 MiB is uncounted" in screen.first()


def test_rings_in_the_hosts_network_make_a_suspect_and_no_culprit(
    node: Outcome, tmp_path: Path
) -> None:
    """Others share that network, and a socket can be handed on: nothing proves whose they are."""
    screen = screen_of(node, "host", tmp_path, "host")
    assert not [row for row in screen.firing if row["workload"] and "/host" in row["workload"]]
    words = ["memory", "--from", str(tmp_path / "host.tgz"), "--json"]
    page = seawall(*words).answered().document
    (suspect,) = {row["cgroup"] for row in page["suspects"] if row["cgroup"].endswith("/host")}
    assert suspect not in {claim["cgroup"] for claim in page["claims"]}
