"""The guard's unit under a real systemd, on Debian's 6.1 with cgroup v2: the sandbox must take
nothing that the guard needs, and however a guard ends, nothing of it stays.

One boot: start, reload, a hung watcher, kill -9, stop; each step leaves what systemd and the guard
said of it.
"""

import difflib
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kernels import guard_peers
from tests.kernels.guard_node import GUEST, packet_diag
from tests.kernels.vm import PYTHON, Image, Outcome, build_image, missing, run_job

from seawall.proc.process_rights import NAMES

pytestmark = [pytest.mark.system, pytest.mark.beside, pytest.mark.timeout(600)]
PACKAGING = Path(__file__).parents[2] / "packaging"
UNIT = "seawall-guard.service"
WATCHDOG_SECONDS = 12
PEACE_SECONDS = 8
PSS_MOST_BYTES = 57 << 20
"""The mark of decision 0032 is 54 MiB, with two spares; a busy machine adds up to 2."""
SHOWN = "MainPID,ActiveState,SubState,Result,NRestarts,WatchdogTimestampMonotonic,ControlGroup"
VOLATILE = r"^fs\.\(aio-nr\|dentry-state\|file-nr\|inode\)\|^kernel\.\(random\|ns_last_pid\|pty\)"
JOB = f"""
mount -t tracefs tracefs /sys/kernel/tracing; mount -t debugfs debugfs /sys/kernel/debug
insmod af_packet_diag.ko
P=/run/seawall/status
show() {{
    echo "=== $1"; echo "=== $1" >> $OUT/log
    systemctl show {UNIT} -p {SHOWN} > $OUT/show-$1; cp $P $OUT/status-$1; cp $P.json $OUT/json-$1
    cat /sys/fs/cgroup/test.slice/web/cgroup.freeze > $OUT/frozen-$1
}}
until_said() {{ # PATTERN; a guard that has died stays said so
    n=0; until grep -q "$1" $P.json || [ $((n += 1)) -gt 150 ]; do sleep 0.2; done
}}
state() {{ # cgroups, tracing, sysctls, /run: what stays when nobody does anything
    for f in cgroup.freeze cgroup.subtree_control memory.max memory.high memory.min memory.low
    do find /sys/fs/cgroup -name $f | sort | while read p; do echo "$p $(cat $p)"; done; done
    T=/sys/kernel/tracing
    for f in tracing_on current_tracer set_event kprobe_events buffer_size_kb
    do echo "$T/$f $(cut -d ' ' -f 1 $T/$f)"; done # not: (expanded: 1408), how large it would be
    ls $T/instances $T/events/kprobes 2> /dev/null
    sysctl -a 2> /dev/null | grep -v '{VOLATILE}'
    find /run -path /run/out -prune -o -path /run/systemd -prune -o -print | sort
}}
mkdir -p /sys/fs/cgroup/test.slice/web
state > $OUT/state-before
echo {UNIT} > $OUT/began; systemctl start {UNIT} 2>> $OUT/began; echo $? >> $OUT/began
until_said '"can_kill": *true'; show started
M=$(systemctl show {UNIT} -p MainPID --value)
for f in status stat oom_score_adj; do cat /proc/$M/$f > $OUT/main-$f; done
until_said '"watcher": *"heard'
for i in 1 2 3
do sleep {PEACE_SECONDS}; /usr/bin/seawall guard status --json > $OUT/shares-$i; done
/usr/bin/seawall guard status > $OUT/shares
sed -i 's/^mode = .*/mode = "enforce"/; s/^#scope = .*/scope = ["\\/test.slice"]/
    s/^#tick_most_seconds = .*/tick_most_seconds = 1/' /etc/seawall/guard.toml
systemctl reload {UNIT}
until_said '"mode": *"enforce"'; until_said '"watcher": *"heard'
until_said '"blind": *[[][]]'; show reloaded
ls /sys/kernel/tracing/instances > $OUT/traced
W=$(head -n 1 $OUT/traced | cut -d - -f 2); echo $W > $OUT/watcher; kill -STOP $W
until_said '"watcher": *"heard.* number 2'; show replaced
ls /sys/kernel/tracing/instances > $OUT/traced-again
python3.11 -S guard_freezes.py /sys/fs/cgroup/test.slice/web
cat /sys/fs/cgroup/test.slice/web/cgroup.freeze > $OUT/frozen-before-kill
systemctl kill --kill-whom=main -s KILL {UNIT}
n=0; until [ "$(systemctl show {UNIT} -p NRestarts --value)" = 1 ] || [ $((n += 1)) -gt 50 ]
do sleep 0.2; done
show killed
n=0; until [ "$(systemctl show {UNIT} -p ActiveState --value)" = active ] ||
    [ $((n += 1)) -gt 150 ]; do sleep 0.2; done
show again
python3.11 -S guard_freezes.py /sys/fs/cgroup/test.slice/web
systemctl kill --kill-whom=main -s STOP {UNIT}; show hangs
n=0; until [ "$(systemctl show {UNIT} -p NRestarts --value)" = 2 ] || [ $((n += 1)) -gt 200 ]
do sleep 0.2; done
show ended
n=0; until [ "$(systemctl show {UNIT} -p ActiveState --value)" = active ] ||
    [ $((n += 1)) -gt 150 ]; do sleep 0.2; done
show third; systemctl stop {UNIT}; show stopped
find /sys/fs/cgroup -name 'seawall*' > $OUT/left; ls /sys/kernel/tracing/instances >> $OUT/left
/usr/bin/seawall guard undo --all > $OUT/undone 2>&1; state > $OUT/state-after
dmesg > $OUT/dmesg
"""


def add(root: Path) -> None:
    """systemd, the unit and its file as they are shipped, and the program where it says."""
    guard_peers.add_systemd(root)
    program = root / "usr/bin/seawall"
    program.write_text(
        f'#!/bin/sh\nexport PYTHONPATH=/opt/seawall\nexec {PYTHON} -S -m seawall "$@"\n'
    )
    program.chmod(0o755)
    shutil.copy(PACKAGING / UNIT, root / "etc/systemd/system")
    beside = root / f"etc/systemd/system/{UNIT}.d"
    beside.mkdir()
    # Here is no journald.  As shipped a hang would last a minute.
    (beside / "log.conf").write_text(
        f"[Service]\nStandardOutput=append:/run/out/log\nWatchdogSec={WATCHDOG_SECONDS}\n"
    )
    shutil.copy(PACKAGING / "guard.toml", root / "etc/seawall")


@pytest.fixture(scope="module")
def with_unit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    if why := missing() or guard_peers.missing(guard_peers.SYSTEMD):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("guard-unit-image")
    yield build_image(folder, add)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def node(with_unit: Image, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    files = {"guard_freezes.py": (GUEST / "guard_freezes.py").read_bytes(),
             "af_packet_diag.ko": packet_diag(with_unit)}  # fmt: skip
    return run_job(
        with_unit, JOB, tmp_path_factory.mktemp("guard-unit"), files=files, memory_mib=768,
        kernel_words="node.init=systemd",
    )  # fmt: skip


def shown(node: Outcome, moment: str) -> dict[str, str]:
    """What systemd said then."""
    lines = node.text(f"show-{moment}").splitlines()
    return dict(line.split("=", 1) for line in lines)


def page(node: Outcome, moment: str) -> dict[str, Any]:
    """What the guard said then."""
    found: dict[str, Any] = json.loads(node.text(f"json-{moment}"))
    return found


def test_it_is_ready_when_systemd_says_so_and_can_kill(node: Outcome) -> None:
    assert node.text("began").splitlines() == [UNIT, "0"]
    said, told = shown(node, "started"), page(node, "started")
    assert (said["ActiveState"], said["SubState"]) == ("active", "running")
    assert said["MainPID"] == str(told["pid"])
    assert (told["mode"], told["can_kill"]) == ("observe", True)
    assert node.text("status-started").startswith("seawall guard OBSERVE")
    assert said["ControlGroup"] == f"/{UNIT}"


def test_the_sandbox_takes_nothing_that_it_needs(node: Outcome) -> None:
    """Neither tracefs nor page frames, neither its priority nor its locked memory."""
    told = page(node, "reloaded")
    assert told["watcher"].startswith("heard ")
    assert (told["blind"], told["problems"]) == ([], [])
    status = dict(re.findall(r"^(\w+):\s+(.+)$", node.text("main-status"), re.MULTILINE))
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"
    assert int(status["CapBnd"], 16).bit_count() == len(NAMES)
    assert int(status["VmLck"].split()[0]) > 5000
    assert int(node.text("main-oom_score_adj")) == -999
    fields = node.text("main-stat").rpartition(") ")[2].split()
    assert (fields[37], fields[38]) == ("1", "1"), "SCHED_FIFO 1"
    assert "seawall-guard: version" in node.text("dmesg")


def test_what_its_processes_hold_together(node: Outcome) -> None:
    """In observe mode; the least of three looks, for a watcher that traces holds more."""
    looks = [json.loads(node.text(f"shares-{number}"))["memory"] for number in (1, 2, 3)]
    assert [look["unread"] for look in looks] == [[], [], []]
    memory = min(looks, key=lambda look: look["pss_bytes"])
    held = [(one["name"], one["pss_bytes"]) for one in memory["processes"]]
    names = ["guard", "helper", "reader", "record", "spare", "spare", "watcher"]
    assert sorted(name for name, _ in held) == names
    assert sum(pss for _, pss in held) == memory["pss_bytes"]
    assert memory["pss_bytes"] <= PSS_MOST_BYTES, held
    assert "Its 7 processes hold " in node.text("shares")
    assert "together (PSS): guard " in " ".join(node.text("shares").split())


def test_systemd_hears_that_it_lives(node: Outcome) -> None:
    times = [int(shown(node, m)["WatchdogTimestampMonotonic"]) for m in ("started", "reloaded")]
    assert 0 < times[0] < times[1]


def test_a_reload_lets_it_act_and_keeps_the_process(node: Outcome) -> None:
    assert page(node, "reloaded")["mode"] == "enforce"
    assert page(node, "reloaded")["scope"] == ["/test.slice"]
    assert shown(node, "reloaded")["MainPID"] == shown(node, "started")["MainPID"]
    assert shown(node, "reloaded")["NRestarts"] == "0"


def test_a_watcher_that_hangs_is_replaced_and_its_tracing_with_it(node: Outcome) -> None:
    told = page(node, "replaced")
    assert "the one before hung: it is stopped (SIGSTOP)" in told["watcher"]
    assert not [words for words in told["blind"] if "trac" in words]
    before, after = set(node.text("traced").split()), set(node.text("traced-again").split())
    hung = f"seawall-{node.text('watcher').strip()}-"
    assert len(before) == len(after) == 3
    assert all(name.startswith(hung) for name in before)
    assert not before & after


def test_after_kill_9_nothing_is_frozen_and_there_is_another(node: Outcome) -> None:
    assert node.text("frozen-before-kill").strip() == "1"
    assert node.text("frozen-killed").strip() == "0"
    said = node.text("log").partition("=== replaced\n")[2].partition("=== killed\n")[0]
    assert said.startswith("/sys/fs/cgroup/test.slice/web: thawed\n"), "by ExecStopPost="
    assert "started" not in said, "before there is another guard"
    again = shown(node, "again")
    assert (again["ActiveState"], again["NRestarts"]) == ("active", "1")
    assert again["MainPID"] != shown(node, "started")["MainPID"]
    assert str(page(node, "again")["pid"]) == again["MainPID"]
    assert page(node, "again")["mode"] == "enforce"


def test_a_guard_that_hangs_is_ended_and_there_is_another(node: Outcome) -> None:
    """What it had frozen is thawed by ``ExecStopPost=``, for it does nothing any more."""
    hangs, ended, third = (shown(node, moment) for moment in ("hangs", "ended", "third"))
    assert (hangs["ActiveState"], hangs["NRestarts"]) == ("active", "1")
    assert node.text("frozen-hangs").strip() == "1"
    assert (ended["NRestarts"], node.text("frozen-ended").strip()) == ("2", "0")
    assert f"{UNIT}: Watchdog timeout" in node.console
    said = node.text("log").partition("=== hangs\n")[2].partition("=== ended\n")[0]
    assert "/sys/fs/cgroup/test.slice/web: thawed\n" in said
    assert third["ActiveState"] == "active"
    assert third["MainPID"] not in {hangs["MainPID"], "0"}
    assert str(page(node, "third")["pid"]) == third["MainPID"]


def test_after_a_stop_nothing_of_it_is_left(node: Outcome) -> None:
    stopped = shown(node, "stopped")
    assert (stopped["ActiveState"], stopped["Result"]) == ("inactive", "success")
    assert "what it had changed is put back" in node.text("log")
    assert page(node, "stopped")["state"] == "stopped"
    assert node.text("left") == ""


def test_after_undo_all_only_the_black_box_differs(node: Outcome) -> None:
    """Cgroups, tracing, sysctls and /run, from before its start to after its end."""
    assert "test.slice/web/cgroup.freeze 0" in node.text("state-before")
    assert "vm.overcommit_memory" in node.text("state-before")
    before, after = (node.text(f"state-{when}").splitlines() for when in ("before", "after"))
    different = [line for line in difflib.ndiff(before, after) if line[:2] in {"+ ", "- "}]
    assert different in ([], ["+ /run/seawall"]), (different, node.text("undone"))
