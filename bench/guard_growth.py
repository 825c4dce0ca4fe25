"""What the whole loop keeps: nothing, over 100,000 ticks in which pods come and go.

One process as the guard is started (Debian's python3.11, ``-I -S``), put together by
``assembly.assemble`` and rehearsed; only the clock is ours and the cgroup tree is
one of files.  Each tick: five pods are made and the five before removed, the watcher's
messages are heard (ledger, claims, names), the loop ticks.  Every 200 ticks a culprit takes
the node's memory for a while, so that it is judged, decided (observe) and told.
``python -m bench.guard_growth [TICKS]``.
"""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from bench.pods import FILES, PYTHON, SOURCES, compile_sources, file_tree

from seawall.guard.entry import ENVIRONMENT

TICKS = 100_000
WARM_TICKS = 2_000
PODS, CHURN = 10, 5
_PROGRAM = """
import sys
sys.path.insert(0, {sources!r})
import gc, json, os, socket, time
from seawall.actions.orders import Mounts
from seawall.guard import aide_process, guard_memory, rehearsal
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.handover import GuardHandover
from seawall.guard.watcher_link import WatcherLink
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.signals import Signals
mount, folder, files, churn = {mount!r}, {folder!r}, {files!r}, {churn}
signals = Signals()
aide = aide_process.start(watcher_fds=[])
from seawall.guard.assembly import assemble, Loop
settings = Settings(scope=("/",), watch=True, tick_least_seconds=0.1)
boot = open("/proc/sys/kernel/random/boot_id").read().strip()
handed = GuardHandover(settings, "/none", Mounts(mount, 1, None, None), "/own", boot, folder,
                -1, 0, -1, 0, ())
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
hearing, box = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
links = WatcherLink(ours, 1, []), RecorderLink(box), ConfigWatch("/none")
parts, words = assemble(handed, aide, *links)
hearing.send(b'{{"t":"hello","pid":1,"next":1}}')
loop = Loop(handed, parts, signals)
loop._cannot_kill = parts.self_test.why_not  # there is no cgroup for it here: said before
clock = [time.monotonic()]
real = time.monotonic
rehearsal.rehearse(loop)
time.monotonic = lambda: clock[0]
guard_memory.shrink()
guard_memory.settle()
watched, forbidden = [False], set()
def audit(event, arguments):
    if not watched[0]:
        return
    if event == "open" and not arguments[2] & os.O_CREAT:
        return
    if event in ("open", "import", "compile", "exec", "os.fork", "os.forkpty", "os.posix_spawn",
                 "os.exec", "subprocess.Popen", "os.mkdir", "socket.__new__"):
        forbidden.add(event + " " + str(arguments[:1]))
sys.addaudithook(audit)
look = parts.sense.look
worse = [0]
def short_look(now):
    node = look(now)
    if not worse[0]:
        return node
    left = max(0, (12 - worse[0]) * node.total_bytes // 100)
    paper = rehearsal._node(now, left)
    return paper._replace(total_bytes=node.total_bytes, claims_seconds=node.claims_seconds)
parts.sense.look = short_look
heard, heard_in = [0], bytearray(1 << 16)  # one buffer: what is measured is not ours
def say(**message):
    try:
        theirs.send(json.dumps(message).encode(), socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass
def make(pod):
    container = pod + "/" + "%064x" % (hash(pod) % (1 << 61))
    for at in (pod, container):
        os.mkdir(at)
        for name, text in files.items():
            fd = os.open(at + "/" + name, os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, text)
            os.close(fd)
    return pod, container
def remove(made):
    for at in reversed(made):
        for name in files:
            os.unlink(at + "/" + name)
        os.rmdir(at)
def names(made):
    rows = []
    for _, container in made:
        path = container[len(mount):]
        rows.append(dict(cgroup=path, inode=os.stat(container).st_ino, name="shop/" + path[-6:],
                         pod=path[-6:], class_rank=1, adj=500, request=None, role=""))
    return rows
def ticks(first, count):
    last, gone = [], []
    for tick in range(first, first + count):
        clock[0] += 1.0
        pods = ["%s/kubepods/burstable/pod%08x-%d" % (mount, tick, i) for i in range(churn)]
        pods = [make(pod) for pod in pods]
        for made in last:
            remove(made)
        worse[0] = tick % 200 - 180 if tick % 200 > 180 else 0
        rows = names(pods)
        grown = worse[0] * (1 << 30)
        hearing.send(b'{{"t":"state","frame":%d,"unix":1.5,"problem":""}}' % tick)
        say(t="ledger", seconds=clock[0], residual=grown, error=1 << 20, quick=grown,
            armed=grown > 0, blind="", unexplained=0, grown=grown)
        say(t="claims", seconds=clock[0], refused=[], rows=[
            dict(cgroup=row["cgroup"], inode=row["inode"], certain=grown, likely=grown,
                 most=grown, sources="packet rings") for row in rows[:2]])
        say(t="groups", rows=rows, gone=gone)
        gone = [row["cgroup"] for row in rows]
        watched[0] = True
        loop.hear(clock[0], ())
        loop.tick(clock[0])
        watched[0] = False
        while True:  # what the guard asked of the watcher
            try:
                theirs.recv_into(heard_in, 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
        while True:
            try:
                size = hearing.recv_into(heard_in, 0, socket.MSG_DONTWAIT)
                heard[0] += 1
                if not size:
                    break
            except BlockingIOError:
                break
        last = pods
    for made in last:
        remove(made)
def now():
    with open("/proc/self/smaps_rollup") as file:
        rows = [line.split() for line in file]
    table = dict((row[0], row[1]) for row in rows if len(row) == 3)
    return [int(table["Rss:"]), int(table["Anonymous:"]), sys.getallocatedblocks()]
first = 1
for _ in range(2):
    ticks(first, {warm} // 2)
    first += {warm} // 2
    now()  # what it takes itself is there, too
before, was = now(), parts.teller._tally.counts()
began, steps = real(), []
for part in range(10):
    ticks(first, {ticks} // 10)
    first += {ticks} // 10
    steps.append(now())
told, watched[0] = sorted(forbidden), True
os.close(os.open("/dev/null", os.O_WRONLY | os.O_CREAT))
watched[0] = False
decisions = parts.teller._tally.counts()["decisions"] - was["decisions"]
found = dict(before=before, steps=steps, decisions=decisions,
             seconds=round(real() - began, 1), cycles=gc.collect(),
             fds=len(os.listdir("/proc/self/fd")), groups=len(parts.sense.groups),
             forbidden=told, is_audited=len(forbidden) > len(told),
             recorder_heard=heard[0], recorder_lost=parts.recorder.lost,
             aide_dropped=aide.dropped, watcher_dropped=parts.sense.dropped)
print(json.dumps(found))
sys.stdout.flush()
aide.close()
os._exit(0)
"""


def measure(ticks: int = TICKS, warm: int = WARM_TICKS) -> dict[str, Any]:
    """``before`` and ``steps``: KiB resident, KiB anonymous, allocated blocks; ``forbidden``: what
    a guard that is ready must not do, by its audit event.
    """
    compile_sources()
    with file_tree(PODS) as mount, tempfile.TemporaryDirectory() as folder:
        text = _PROGRAM.format(
            sources=str(SOURCES), mount=mount, folder=folder, files=FILES, churn=CHURN,
            warm=warm, ticks=ticks,
        )  # fmt: skip
        done = subprocess.run(
            [PYTHON, "-I", "-S", "-c", text], check=True, stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL, env={"PATH": os.defpath, **ENVIRONMENT},
        )  # fmt: skip
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main(argv: list[str]) -> int:
    """Print what was found, one JSON document."""
    print(json.dumps(measure(int(argv[0]) if argv else TICKS), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
