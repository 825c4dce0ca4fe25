"""In the guest: orders carried out on real v2 cgroups; what became of them goes to argv[1]."""

import json
import os
import signal
import subprocess
import sys
import time

from seawall.actions import cgroup_files
from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.mounts import find_mounts
from seawall.actions.orders import Order, Outcome, Step, Target
from seawall.actions.undo import undo
from seawall.guard.self_test import SelfTest

ROOT = "/sys/fs/cgroup"
HOG = """
import sys, time
held = bytearray(b'x') * (int(sys.argv[1]) << 20)
print('held', flush=True)
time.sleep(600)
"""
STUCK = (
    HOG.replace("time.sleep(600)", "")
    + """
import mmap, os
os.preadv(os.open('/tmp/never/silent', os.O_RDONLY | os.O_DIRECT), [mmap.mmap(-1, 4096)], 0)
"""
)
FORKS = """
import os, sys, time
left = int(sys.argv[1])
while left > 1 and os.fork() == 0:
    left -= 1
if left == 1:
    open(sys.argv[2], "w").close()  # the last one: whoever is counted now stays
while True:
    try:
        if os.fork() == 0:
            os._exit(0)
        os.waitpid(-1, 0)
    except OSError:
        time.sleep(0.01)
    time.sleep(4)
"""
found: dict[str, object] = {}


def group(path: str) -> str:
    os.makedirs(ROOT + path, exist_ok=True)
    return path


def put(path: str, name: str, value: str) -> None:
    with open(f"{ROOT}{path}/{name}", "w") as file:
        file.write(value)


def get(path: str, name: str) -> str:
    with open(f"{ROOT}{path}/{name}") as file:
        return file.read().strip()


def start(path: str, program: str, *words: str) -> "subprocess.Popen[bytes]":
    entry = f'echo 0 > {ROOT}{path}/cgroup.procs && exec python3.11 -I -S -c "$@"'
    return subprocess.Popen(["sh", "-c", entry, "sh", program, *words], stdout=subprocess.PIPE)


def hog(path: str, mib: int, program: str = HOG) -> "subprocess.Popen[bytes]":
    child = start(path, program, str(mib))
    assert child.stdout
    child.stdout.readline()
    return child


def order(path: str, step: Step = "kill", limit: int | None = None) -> Order:
    target = Target(path, os.stat(ROOT + path).st_ino, path)
    return Order("b0-1", step, target, "node_short", 0, limit)


def short(outcome: Outcome) -> dict[str, object]:
    return {name: value for name, value in outcome._asdict().items() if name != "order"}


def wait(is_so: "object", seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if is_so():  # type: ignore[operator]
            return True
        time.sleep(0.02)
    return False


def forks(hands: Executor, name: str) -> None:
    """200 that fork: with cgroup.kill, or as kernels before 5.14 have to."""
    path = group(f"/pods/{name}")
    all_there = f"/run/all-{name}"
    bomb = start(path, FORKS, "200", all_there)
    wait(lambda: os.path.exists(all_there), 40)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    outcome = hands.perform(order(path))
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    is_empty = wait(
        lambda: hands.tend(time.monotonic()) or "populated 0" in get(path, "cgroup.events")
    )
    bomb.wait()
    wait(lambda: not get(path, "cgroup.procs").strip())
    hands.tend(time.monotonic())  # it says now that all are gone, and not in what follows
    hands.words.clear()
    found[name] = {**short(outcome), "is_empty": is_empty, "freeze": get(path, "cgroup.freeze")}


def older_kernel(hands: Executor) -> None:
    """No cgroup.kill: the file is not there for our writes."""
    write = cgroup_files.write

    def without(folder: int, name: str, value: str) -> bool:
        return name != "cgroup.kill" and write(folder, name, value)

    cgroup_files.write = without
    try:
        forks(hands, "before_514")
    finally:
        cgroup_files.write = write


def freezes(hands: Executor) -> None:
    path = group("/pods/freeze")
    hog(path, 1)
    first = hands.perform(order(path, "freeze"))
    state = get(path, "cgroup.events")
    hands.tend(time.monotonic())
    kept = get(path, "cgroup.freeze")
    hands.tend(time.monotonic() + 60)
    found["freeze"] = {
        **short(first), "events": state, "kept": kept, "after": get(path, "cgroup.freeze"),
        "words": list(hands.words),
    }  # fmt: skip
    hands.words.clear()
    put(path, "cgroup.freeze", "1")
    other = hands.perform(order(path, "freeze"))
    hands.tend(time.monotonic() + 60)
    found["frozen_by_other"] = {**short(other), "after": get(path, "cgroup.freeze")}
    killed = hands.perform(order(path))
    found["kill_frozen_by_other"] = short(killed)


def clamps(hands: Executor, journal: Journal) -> None:
    path = group("/pods/clamp")
    put(path, "memory.max", str(300 << 20))
    child = hog(path, 120)
    rows = {
        "above": hands.perform(order(path, "clamp", 200 << 20)),
        "higher": hands.perform(order(path, "clamp", 400 << 20)),
        "acts": hands.perform(order(path, "clamp", 60 << 20)),
    }
    found["clamped_to"] = get(path, "memory.max")
    found["clamp_status"] = child.wait(30)
    child = hog(path, 50)
    rows["tighter"] = hands.perform(order(path, "clamp", 20 << 20))
    found["tightened_to"] = get(path, "memory.max")
    found["tightened_status"] = child.wait(30)
    hands.tend(time.monotonic())
    found["tightened_words"] = list(hands.words)
    rows["unclamp"] = hands.perform(order(path, "unclamp"))
    found["unclamped_to"] = get(path, "memory.max")
    two = [hog(path, 20), hog(path, 20)]
    rows["two"] = hands.perform(order(path, "clamp", 10 << 20))
    put(path, "memory.oom.group", "1")
    rows["as_one"] = hands.perform(order(path, "clamp", 10 << 20))
    found["both_ended"] = [child.wait(30) for child in two]
    put(path, "memory.max", str(77 << 20))
    rows["changed"] = hands.perform(order(path, "unclamp"))
    found["changed_to"] = get(path, "memory.max")
    found["clamp"] = {name: short(outcome) for name, outcome in rows.items()}
    found["untold"] = [change.new for _, change in journal.changes()]
    hands.signal_journal.settle()  # as the loop does once its decisions are written
    found["journal_after"] = len(journal.changes())


def killed_guard(mounts: object) -> None:
    """A guard that clamps and freezes and dies; the next one puts both back."""
    path = group("/pods/left")
    put(path, "memory.max", str(300 << 20))
    child = hog(path, 60)
    pid = os.fork()
    if pid == 0:
        hands = Executor(mounts, ("/pods",), Journal("/run/left.undo"))  # type: ignore[arg-type]
        hands.prepare()
        hands.perform(order(path, "freeze"))
        put(path, "memory.oom.group", "0")
        hands.perform(order(path, "clamp", 50 << 20))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    before = [get(path, "cgroup.freeze"), get(path, "memory.max")]
    words = undo(Journal("/run/left.undo"))
    found["left"] = {
        "before": before, "words": words,
        "after": [get(path, "cgroup.freeze"), get(path, "memory.max")],
    }  # fmt: skip
    child.kill()


def stuck(hands: Executor) -> None:
    """A victim that waits for a filesystem that never answers holds 150 MiB."""
    os.makedirs("/tmp/never")
    server = subprocess.Popen(["python3.11", "fuse_server.py", "/tmp/never", "silent"])
    path = group("/pods/stuck")
    wait(lambda: os.path.exists("/tmp/never/silent"))
    child = hog(path, 150, STUCK)
    time.sleep(1)
    before = int(get(path, "memory.current"))
    outcome = hands.perform(order(path))
    wait(lambda: hands.tend(time.monotonic()) or int(get(path, "memory.current")) < before // 3, 5)
    found["stuck"] = {
        **short(outcome), "before": before, "after": int(get(path, "memory.current")),
        "populated": get(path, "cgroup.events"),
    }  # fmt: skip
    hands.words.clear()
    server.kill()
    wait(lambda: hands.tend(time.monotonic()) or hands.words)
    found["stuck_words"] = list(hands.words)
    child.wait(10)


class Forker:
    """The aide, in its simplest form."""

    def send(self, request: dict[str, object], /) -> bool:
        if os.fork() == 0:
            for path in request["cgroup_procs"]:  # type: ignore[attr-defined]
                with open(path, "w") as file:
                    file.write("0")
            time.sleep(60)
            os._exit(0)
        return True

    def take(self, kind: str, /) -> None:
        return None


def self_test(mounts: object) -> None:
    hands = Executor(mounts, (), Journal("/run/test.undo"))  # type: ignore[arg-type]
    hands.prepare()
    test = SelfTest(hands, Forker(), mounts, group("/pods/guard"))  # type: ignore[arg-type]
    problem = test.prepare()
    test.begin(time.monotonic())
    words: list[str] = []
    wait(lambda: words.append(test.poll(time.monotonic()) or "") or words[-1], 8)
    test.close()
    found["self_test"] = [
        problem,
        words[-1],
        os.listdir(ROOT + "/pods/guard").count(test.__module__),
    ]


def main() -> None:
    with open("/proc/self/mountinfo") as file:
        mounts = find_mounts(file.read())
    found["mounts"] = list(mounts)
    group("/pods")
    put("", "cgroup.subtree_control", "+memory")
    put("/pods", "cgroup.subtree_control", "+memory")
    journal = Journal("/run/guard.undo")
    hands = Executor(mounts, ("/pods",), journal)
    hands.prepare()
    hands.rehearse()
    forks(hands, "at_once")
    older_kernel(hands)
    freezes(hands)
    clamps(hands, journal)
    killed_guard(mounts)
    stuck(hands)
    self_test(mounts)
    found["undone"] = hands.undo_all()


if __name__ == "__main__":
    try:
        main()
    finally:
        with open(sys.argv[1], "w") as out:
            json.dump(found, out, indent=1)
