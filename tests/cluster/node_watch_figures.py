"""What the watch of all nodes costs its process, as one line of JSON.

``python -m tests.cluster.node_watch_figures SERVER CA TOKEN FORM SECONDS``: FORM is ``watch-list``
or ``pages``; after the first list it listens for so many seconds more.
"""

import json
import resource
import sys
import threading
import time
from pathlib import Path

from seawall.cluster.kube.kube_client import ClusterAccess, KubeClient
from seawall.cluster.kube.list_watch import ObjectEvent, ObjectEventKind
from seawall.cluster.kube.node_row import NodeRow, RowFields
from seawall.cluster.kube.node_watch import NodeWatch
from seawall.cluster.objects.seawall_policy_object import SeawallPolicyObject
from seawall.cluster.observer.node_life import NodeLife


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Of this program: getrusage(2) counts what the process held before it became it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def main(server: str, ca_file: str, token: str, form: str, seconds: str) -> None:
    client = KubeClient(ClusterAccess(server, ca_file, token=token))
    life, synced, heard = NodeLife(), threading.Event(), [0]

    def hear(event: ObjectEvent[NodeRow]) -> None:
        heard[0] += 1
        if event.value is not None:
            life.see(event.value, event.at_seconds)
        if event.kind is ObjectEventKind.SYNCED:
            synced.set()

    fields = RowFields.of_policy(SeawallPolicyObject())
    watch = NodeWatch(client, fields, hear, has_watch_list=form == "watch-list")
    before, began = resident_bytes(), time.monotonic()
    threading.Thread(target=watch.run, daemon=True).start()
    synced.wait(120)
    sync_seconds, sync_cpu, after = time.monotonic() - began, time.process_time(), resident_bytes()
    first = heard[0]
    time.sleep(float(seconds))
    print(json.dumps({
        "form": form, "nodes": len(watch), "sync_seconds": round(sync_seconds, 2),
        "sync_cpu_seconds": round(sync_cpu, 2),
        "resident_before_mib": round(before / 2**20, 1),
        "resident_after_mib": round(after / 2**20, 1),
        "kib_a_node": round((after - before) / 1024 / max(len(watch), 1), 2),
        "peak_mib": round(peak_bytes() / 2**20, 1),
        "events_after": heard[0] - first,
        "cpu_after_seconds": round(time.process_time() - sync_cpu, 2), "seconds": float(seconds),
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
