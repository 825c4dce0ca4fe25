"""What the watch of all nodes costs with other people's clients, as one line of JSON.

``PYTHON -m tests.cluster.peer_watch_figures SERVER CA TOKEN CLIENT SECONDS NODES``: CLIENT is
``kubernetes``, ``lightkube`` or ``kopf``, which PYTHON must have; as `node_watch_figures`, and like
it each keeps of a node no more than a row.
"""

import json
import os
import resource
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = tuple[object, ...]
Hear = Callable[[str, str, Row], None]


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def peak_bytes() -> int:
    """Of this program: getrusage(2) counts what the process held before it became it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def row(node: Any) -> Row:
    """Of an object with attributes, as both libraries have it, what an observer needs."""
    ready = next((one.status for one in node.status.conditions or () if one.type == "Ready"), "")
    info, labels = node.status.nodeInfo, node.metadata.labels or {}
    return (node.metadata.uid, node.metadata.resourceVersion, ready, info.bootID,
            info.kernelVersion, labels.get("topology.kubernetes.io/zone"),
            node.spec.unschedulable)  # fmt: skip


def official_row(node: Any) -> Row:
    ready = next((one.status for one in node.status.conditions or () if one.type == "Ready"), "")
    info, labels = node.status.node_info, node.metadata.labels or {}
    return (node.metadata.uid, node.metadata.resource_version, ready, info.boot_id,
            info.kernel_version, labels.get("topology.kubernetes.io/zone"),
            node.spec.unschedulable)  # fmt: skip


def official(server: str, ca_file: str, token: str, hear: Hear) -> None:
    from kubernetes import client, watch

    settings = client.Configuration()
    settings.host, settings.ssl_ca_cert = server, ca_file
    settings.api_key = {"authorization": f"Bearer {token}"}
    api = client.CoreV1Api(client.ApiClient(settings))
    listed = api.list_node()
    for node in listed.items:
        hear("ADDED", node.metadata.name, official_row(node))
    version = listed.metadata.resource_version
    del listed
    for event in watch.Watch().stream(api.list_node, resource_version=version):
        hear(event["type"], event["object"].metadata.name, official_row(event["object"]))


def light(server: str, ca_file: str, token: str, hear: Hear) -> None:
    from lightkube import Client
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.resources.core_v1 import Node

    api = Client(config=KubeConfig.from_dict(kubeconfig(server, ca_file, token)))
    listed = api.list(Node)
    for node in listed:
        hear("ADDED", node.metadata.name, row(node))
    for kind, node in api.watch(Node, resource_version=listed.resourceVersion):
        hear(kind, node.metadata.name, row(node))


def framework(server: str, ca_file: str, token: str, hear: Hear) -> None:
    import asyncio

    import kopf

    @kopf.on.login()
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=server, ca_path=ca_file, scheme="Bearer", token=token)

    @kopf.on.event("", "v1", "nodes")
    def see(event: Any, **_: Any) -> None:
        node = event["object"]
        conditions = node["status"].get("conditions", ())
        ready = next((one["status"] for one in conditions if one["type"] == "Ready"), "")
        info, metadata = node["status"]["nodeInfo"], node["metadata"]
        hear(event["type"] or "ADDED", metadata["name"], (
            metadata["uid"], metadata["resourceVersion"], ready, info["bootID"],
            info["kernelVersion"], metadata["labels"].get("topology.kubernetes.io/zone"),
            node["spec"].get("unschedulable"),
        ))  # fmt: skip

    asyncio.run(kopf.operator(clusterwide=True, standalone=True))


def kubeconfig(server: str, ca_file: str, token: str) -> dict[str, Any]:
    cluster = {"server": server, "certificate-authority": ca_file}
    return {
        "clusters": [{"name": "x", "cluster": cluster}],
        "users": [{"name": "x", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }  # fmt: skip


CLIENTS = {"kubernetes": official, "lightkube": light, "kopf": framework}


def main(server: str, ca_file: str, token: str, client: str, seconds: str, nodes: str) -> None:
    rows: dict[str, Row] = {}
    heard = [0]

    def hear(kind: str, name: str, values: Row) -> None:
        heard[0] += 1
        if kind == "DELETED":
            rows.pop(name, None)
        else:
            rows[name] = values

    before, began, before_cpu = resident_bytes(), time.monotonic(), time.process_time()
    run = threading.Thread(target=CLIENTS[client], args=(server, ca_file, token, hear), daemon=True)
    run.start()
    while len(rows) < int(nodes) and time.monotonic() - began < 600 and run.is_alive():
        time.sleep(0.05)
    sync_seconds, sync_cpu = time.monotonic() - began, time.process_time() - before_cpu
    after, first = resident_bytes(), heard[0]
    time.sleep(float(seconds))
    print(json.dumps({
        "form": client, "nodes": len(rows), "sync_seconds": round(sync_seconds, 2),
        "sync_cpu_seconds": round(sync_cpu, 2),
        "resident_before_mib": round(before / 2**20, 1),
        "resident_after_mib": round(after / 2**20, 1),
        "kib_a_node": round((after - before) / 1024 / max(len(rows), 1), 2),
        "peak_mib": round(peak_bytes() / 2**20, 1),
        "events_after": heard[0] - first,
        "cpu_after_seconds": round(time.process_time() - before_cpu - sync_cpu, 2),
        "seconds": float(seconds),
    }), flush=True)  # fmt: skip
    os._exit(0)  # none of them ends by itself


if __name__ == "__main__":
    main(*sys.argv[1:])
