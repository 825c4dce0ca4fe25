"""Looks at a process in a cgroup of version 2 to which programs are attached, as JSON on stdout.

Runs in a mount namespace of its own, without the devices tree of version 1: there this kernel
is one that has version 2 alone.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from tests.host.device_program import ALLOW, DENY, attached, v2_cgroup, v2_mount

from seawall.accounts.devices.watch.changes import Changes
from seawall.accounts.devices.watch.device_watch_events import DeviceKey, WatchedTable
from seawall.accounts.devices.watch.watched_table import WatchedDevices
from seawall.accounts.workloads import Workload
from seawall.host.device_access.process_handle import ProcessHandle
from seawall.readings.cgroup import CgroupLayout, Cgroups
from seawall.readings.device_access import AccessTarget
from seawall.views.documents.gpu_event_document import json_lines
from seawall.watcher.device_probe import DeviceProbe, now
from seawall.watcher.device_writes import DeviceWrites

PATH = "/dev/null"


def main() -> None:
    writes = DeviceWrites(lambda write: write)
    sys.stdout.write(json.dumps(list(writes.unseen)) + "\n")
    with v2_cgroup("seawall-watch") as folder:
        sleeper = subprocess.Popen(["sleep", "100"])
        try:
            (folder / "cgroup.procs").write_text(str(sleeper.pid))
            with attached(folder, ALLOW):
                look_and_tell(folder.name, sleeper.pid, lambda: attached(folder, DENY))
        finally:
            sleeper.kill()
            sleeper.wait()


def look_and_tell(
    name: str, pid: int, deny: Callable[[], AbstractContextManager[None]]
) -> None:  # fmt: skip
    sight = DeviceProbe(None, 20.0)
    layout = CgroupLayout(v1={}, v2=str(v2_mount()), v2_controllers=())
    sight._cgroups = Cgroups(layout, ("/", f"/{name}"), str(v2_mount()), {}, ())
    workload = Workload(kind="container", name=name, cgroup=f"/{name}")
    target = AccessTarget(pid, ProcessHandle(pid).start_ticks(), (PATH,))
    sight.containers = (WatchedDevices(workload=workload, target=target, place=f"/{name}"),)
    changes = Changes()
    key = DeviceKey(f"/{name}", PATH)
    changes.tell(WatchedTable(at=now(), names={f"/{name}": name}, layers={key: {}}, lacks={}))
    changes.see(sight.look())
    time.sleep(0.3)
    with deny():
        time.sleep(0.3)
        refused = changes.see(sight.look())
    again = changes.see(sight.look())
    sight.close()
    for line in json_lines((*refused, *again)):
        sys.stdout.write(line + "\n")


if __name__ == "__main__":
    main()
