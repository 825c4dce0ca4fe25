# SPDX-License-Identifier: Apache-2.0
"""What the host tells of a workload for its role: folders that it was given, programs it runs.

The runtime's own config.json (OCI runtime-spec, ``mounts``), after the sieve; /proc/PID/exe and
ns/mnt of processes in the host's own cgroups.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from seawall.accounts.workloads import Workload
from seawall.host.host import Host, Unread
from seawall.readings.container_files import CONFIG_LIMIT_BYTES, CONTAINERD, STORAGE_RUN

_PROCESSES_MOST: Final = 16
_FOLDERS_MOST: Final = 64
_OF_ROOT: Final = ("/usr/", "/bin/", "/sbin/", "/opt/", "/lib/")
"""Where nobody but root may put a program."""
_DELETED: Final = " (deleted)"


def given_folders(host: Host, workload: Workload) -> tuple[str, ...] | Unread:
    """The host's folders in a container of Kubernetes, of those that tell a role; Unread where no
    runtime's file of it can be read.
    """
    if workload.container_id is None or workload.pod_uid is None or workload.is_sandbox:
        return ()
    why: Unread | None = None
    for path in _configs(workload.container_id):
        data = host.read(path, CONFIG_LIMIT_BYTES)
        if not isinstance(data, Unread):
            return tuple(_sources(data))[:_FOLDERS_MOST]
        if why is None or (why.why == "absent" and data.why != "absent"):
            why = data
    return why or ()


def _configs(container_id: str) -> Iterator[str]:
    for root in CONTAINERD:
        yield f"{root}/k8s.io/{container_id}/config.json"
        yield f"{root}/moby/{container_id}/config.json"  # Docker, by cri-dockerd
    yield f"{STORAGE_RUN}/{container_id}/userdata/config.json"


def _sources(data: bytes) -> Iterator[str]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    mounts = document.get("mounts") if isinstance(document, dict) else None
    for mount in mounts if isinstance(mounts, list) else ():
        source = mount.get("source") if isinstance(mount, dict) else None
        if isinstance(source, str):
            yield source


def programs(host: Host, pids: Iterable[int]) -> tuple[str, ...]:
    """Names of the programs of root's that these processes of the host run, in its own tree."""
    home = host.link("/proc/1/ns/mnt")
    found: dict[str, None] = {}
    for pid in list(pids)[:_PROCESSES_MOST]:
        if host.link(f"/proc/{pid}/ns/mnt") != home:
            continue  # what lies at a path there is not what lies there here
        path = host.link(f"/proc/{pid}/exe")
        if isinstance(path, str) and path.startswith(_OF_ROOT):
            found[path.removesuffix(_DELETED).rpartition("/")[2]] = None
    return tuple(found)
