"""From the decision to the first action: the real loop, real cgroups of our own, real processes.

The shortage is on paper (the node's figures are made up, nothing is filled); the workload that
is killed for it is a real process in a real cgroup (v1, as root), with 250 pods beside it.
Each run is a process as the guard is started.  ``python -m bench.guard_reaction [RUNS]``.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.pods import PODS, PYTHON, SOURCES, compile_sources, real_tree

RUNS = 10
FREEZER = "/sys/fs/cgroup/freezer"
_PROGRAM = """
import sys
sys.path.insert(0, {sources!r})
import json, os, socket, time
from seawall.actions.orders import Mounts
from seawall.guard import aide_process, guard_memory, rehearsal
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.handover import GuardHandover
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.watcher_link import WatcherLink
from seawall.guard.settings import Settings
from seawall.guard.signals import Signals
signals = Signals()
aide = aide_process.start(watcher_fds=[])
from seawall.guard.assembly import assemble, Loop
settings = Settings(mode="enforce", scope=({scope!r},))
boot = open("/proc/sys/kernel/random/boot_id").read().strip()
handed = GuardHandover(settings, "/none", Mounts("/sys/fs/cgroup/memory", 1, {freezer!r}, None),
                {scope!r} + "/own", boot, {folder!r}, -1, 0, -1, 0, ())
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
links = WatcherLink(ours, 1, []), RecorderLink(None), ConfigWatch("/none")
parts, words = assemble(handed, aide, *links)
loop = Loop(handed, parts, signals)
rehearsal.rehearse(loop)
guard_memory.lock()
guard_memory.hurry()
guard_memory.settle()
look, count = parts.sense.look, [0]
def short_look(now):
    node = look(now)
    left = max(0, (12 - count[0]) * node.total_bytes // 100)
    paper = rehearsal._node(now, left)
    return paper._replace(total_bytes=node.total_bytes, claims_seconds=node.claims_seconds)
parts.sense.look = short_look
clock, done = time.perf_counter, []
step, perform = type(loop.judge).step, type(parts.hands).perform
def stepped(judge, node, groups):
    verdict = step(judge, node, groups)
    done.append(["step", clock(), 0.0])
    return verdict
def performed(hands, order):
    began = clock()
    outcome = perform(hands, order)
    done.append([order.step, began, outcome.first_action_seconds, outcome.is_done,
                 order.target.path, outcome.problem])
    return outcome
type(loop.judge).step, type(parts.hands).perform = stepped, performed
victim, inode = {victim!r}, {inode}
found = None
for count[0] in range(1, 60):
    now = time.monotonic()
    grown = count[0] << 28
    for message in (
        dict(t="groups", gone=[], rows=[dict(cgroup=victim, inode=inode, name="shop/web", pod="web",
             class_rank=1, adj=500, request=None, role="")]),
        dict(t="ledger", seconds=now, residual=grown, error=1 << 20, quick=grown, armed=True,
             blind="", unexplained=0, grown=grown),
        dict(t="claims", seconds=now, refused=[], rows=[dict(cgroup=victim, inode=inode,
             certain=grown, likely=grown, most=grown, sources="packet rings")]),
    ):
        theirs.send(json.dumps(message).encode())
    loop.hear(now, ())
    done.clear()
    began = clock()
    loop.tick(now)
    acts = [row for row in done if row[0] in ("freeze", "kill", "terminate")]
    if acts:
        act, decided = acts[0], [row for row in done if row[0] == "step"][0]
        found = dict(step=act[0], is_done=act[3], path=act[4], problem=act[5],
                     decision_to_action_ms=1000 * (act[1] - decided[1] + act[2]),
                     tick_to_action_ms=1000 * (act[1] - began + act[2]))
        break
    time.sleep(0.05)
print(json.dumps(found))
sys.stdout.flush()
parts.hands.undo_all()
parts.self_test.close()
aide.close()
os._exit(0)
"""


def measure() -> dict[str, Any] | None:
    """One run; None where no cgroups can be made."""
    with real_tree(PODS) as mount, tempfile.TemporaryDirectory() as folder:
        if mount is None:
            return None
        scope = "/" + os.path.basename(mount)
        made = [f"{mount}/victim", f"{FREEZER}{scope}", f"{FREEZER}{scope}/victim"]
        for place in made:
            os.mkdir(place)
        victim = subprocess.Popen(["sleep", "600"])
        try:
            for place in (made[0], made[2]):
                Path(place, "cgroup.procs").write_text(str(victim.pid))
            answer = _run(scope, folder, os.stat(made[0]).st_ino)
            answer["killed_by"] = victim.wait(10) if answer["step"] == "kill" else None
        finally:
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            for place in reversed([*made, f"{mount}/own"]):
                if os.path.isdir(place):
                    os.rmdir(place)
    return answer


def _run(scope: str, folder: str, inode: int) -> dict[str, Any]:
    compile_sources()
    text = _PROGRAM.format(
        sources=str(SOURCES), scope=scope, folder=folder, freezer=FREEZER, inode=inode,
        victim=f"{scope}/victim",
    )  # fmt: skip
    done = subprocess.run(
        [PYTHON, "-I", "-S", "-c", text], check=True, stdout=subprocess.PIPE, text=True
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(argv: list[str]) -> int:
    """Print what was measured, one JSON document."""
    runs = [measure() for _ in range(int(argv[0]) if argv else RUNS)]
    print(json.dumps(runs, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
