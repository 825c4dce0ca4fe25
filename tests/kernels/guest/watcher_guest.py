"""In a VM: starts the watcher as the guard does, lets culprits begin, and stamps what it says.

``watcher_guest.py OUT CGROUP GO SECONDS ...``: for each culprit (its cgroup, the file that it waits
for) listen so long, then kill it.  OUT gets {"rest": ..., "culprits": [...]} as JSON.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, "/opt/seawall")
from seawall.guard.entry import watcher_argv

QUIET_SECONDS = 10


class Ear:
    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self.heard: list[tuple[float, dict[str, object]]] = []

    def listen(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._end], [], [], left)[0]:
                data = self._end.recv(1 << 17)
                self.heard.append((time.monotonic(), json.loads(data)))


def footprint(pid: int) -> dict[str, float]:
    rows = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {row.split(":")[0]: int(row.split()[1]) for row in rows[1:]}
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    ticks = int(words[11]) + int(words[12])
    return {
        "rss_mib": sizes["Rss"] / 1024, "pss_mib": sizes["Pss"] / 1024, "majflt": int(words[9]),
        "cpu_seconds": ticks / os.sysconf("SC_CLK_TCK"),
    }  # fmt: skip


def main(out: str, *culprits: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen(watcher_argv(theirs.fileno()), pass_fds=(theirs.fileno(),))
    theirs.close()
    ear, began = Ear(ours), time.monotonic()
    while not any(m["t"] == "hello" for _, m in ear.heard) and time.monotonic() < began + 60:
        ear.listen(0.2)
    told = {"hello_seconds": time.monotonic() - began, "rest": [], "culprits": []}
    told["rest"].append(footprint(process.pid))
    ear.listen(QUIET_SECONDS)
    told["rest"].append(footprint(process.pid))
    for cgroup, go, seconds in zip(culprits[::3], culprits[1::3], culprits[2::3], strict=True):
        ear.heard = []
        ear.listen(1)
        inode = os.stat(f"/sys/fs/cgroup{cgroup}").st_ino
        start = time.monotonic()
        Path(go).touch()
        ear.listen(float(seconds))
        heard = [(at - start, message) for at, message in ear.heard]
        told["culprits"].append({
            "cgroup": cgroup, "inode": inode, "heard": heard, "after": footprint(process.pid),
        })  # fmt: skip
        for pid in Path(f"/sys/fs/cgroup{cgroup}/cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        ear.listen(4)
    ours.close()
    told["status"] = process.wait(20)
    Path(out).write_text(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
