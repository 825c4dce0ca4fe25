# SPDX-License-Identifier: Apache-2.0
"""Names of containers and pods, from files that are on the node already.

/var/log/containers links, /var/log/pods, and each runtime's own state under /run or
/var/lib.  No network call, no client library; what may lie on a stuck disk is read with a
deadline.  Names of files cost one question for all containers; a container's own config is
read only when they did not tell who it is.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from seawall.host.host import Host, Unread
from seawall.readings.container_names import (
    ID,
    from_log_link,
    from_pod_logs,
    parse_config,
    parse_containers,
    parse_state,
)
from seawall.readings.reading import read_as

LOG_LINKS: Final = "/var/log/containers"
POD_LOGS: Final = "/var/log/pods"
CONTAINERD: Final = (
    "/run/containerd/io.containerd.runtime.v2.task",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task",
    "/run/k3s/containerd/io.containerd.runtime.v2.task",
    "/run/k0s/containerd/io.containerd.runtime.v2.task",
    "/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task",
)
STORAGE_RUN: Final = "/run/containers/storage/overlay-containers"
STORAGE_LIB: Final = "/var/lib/containers/storage/overlay-containers"
STORAGE_LISTS: Final = (
    STORAGE_LIB + "/containers.json",
    STORAGE_LIB + "/volatile-containers.json",
    STORAGE_RUN + "/volatile-containers.json",
)
DOCKER_RUN: Final = ("/run/docker/runtime-runc/moby", "/var/run/docker/runtime-runc/moby")
DOCKER_LIB: Final = "/var/lib/docker/containers"
OCI_STATE: Final = (("/run/runc", "runc"), ("/run/crun", "crun"))
CONFIG_LIMIT_BYTES: Final = 2 << 20
CONFIGS_MOST: Final = 5000
"""A folder with more ids than a node has containers is not what it seems."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerFile:
    """What the node's files tell of one container id."""

    container_id: str
    runtime: str | None = None
    name: str | None = None
    """The runtime's own name for it (Docker, Podman, nerdctl)."""
    namespace: str | None = None
    pod: str | None = None
    pod_uid: str | None = None
    container: str | None = None
    is_sandbox: bool = False
    sandbox_id: str | None = None
    cgroups_path: str | None = None
    """``linux.cgroupsPath`` of its OCI config, as written there."""
    cgroup_folder: str | None = None
    """The absolute folder of its memory cgroup, from runc's state."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """The topic; never wholly unread, for a cgroup path alone says a lot."""

    by_id: Mapping[str, ContainerFile]
    pods: Mapping[str, tuple[str, str]]
    """pod uid -> (namespace, name), from /var/log/pods and sandbox configs."""
    unread: tuple[Unread, ...]


def read(host: Host) -> ContainerFiles | Unread:
    """Everything that can be had; what was refused or never answered is in ``unread``."""
    search = _Search(host)
    search.log_links()
    search.pod_logs()
    for root in CONTAINERD:
        search.containerd(root)
    search.storage()
    search.docker()
    for root, runtime in OCI_STATE:
        search.oci_state(root, runtime)
    return search.result()


class _Search:
    """One pass over the node's files; each id keeps all that any of them told."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._told: dict[str, dict[str, Any]] = {}
        self._pods: dict[str, tuple[str, str]] = {}
        self._unread: list[Unread] = []
        self._configs_left = CONFIGS_MOST

    def log_links(self) -> None:
        for name in self._names(LOG_LINKS):
            if told := from_log_link(name):
                self._tell(told.pop("container_id"), LOG_LINKS, told)

    def pod_logs(self) -> None:
        for name in self._names(POD_LOGS):
            if found := from_pod_logs(name.rstrip("/")):
                self._pods[found[0]] = found[1:]

    def containerd(self, root: str) -> None:
        """ROOT/NAMESPACE/ID/config.json; the namespace ``moby`` is Docker's."""
        for namespace in self._names(root):
            folder = f"{root}/{namespace.rstrip('/')}"
            for key in self._ids(folder):
                if namespace == "moby/":
                    self._docker_container(key)
                    continue
                self._tell(key, folder, {"runtime": "containerd"})
                if "container" not in self._told[key]:
                    self._read(key, f"{folder}/{key}/config.json", parse_config)

    def storage(self) -> None:
        """Podman and CRI-O: one list names them all, else each one's config."""
        running = [key for key in self._ids(STORAGE_RUN) if "container" not in self._told_of(key)]
        if not running:
            return
        wanted = set(running)
        for path in STORAGE_LISTS:
            listed = read_as(self._host, path, parse_containers)
            if isinstance(listed, Unread):
                self._note(listed)
                continue
            for key in wanted & listed.keys():
                kubernetes = "pod" in listed[key]
                self._tell(key, path, {"runtime": "cri-o" if kubernetes else "podman"})
                self._tell(key, path, listed[key])
        for key in running:
            if not self._told_of(key):
                for root in (STORAGE_RUN, STORAGE_LIB):
                    if self._read(key, f"{root}/{key}/userdata/config.json", parse_config):
                        break

    def docker(self) -> None:
        """Where containerd's folder did not tell: Docker's own runc state."""
        for folder in DOCKER_RUN:
            for key in self._ids(folder):
                if "runtime" not in self._told_of(key):
                    self._docker_container(key)

    def oci_state(self, root: str, runtime: str) -> None:
        """Containers that nobody but runc or crun itself knows."""
        for key in self._ids(root):
            if not self._told_of(key):
                self._tell(key, root, {"runtime": runtime})
                self._read(key, f"{root}/{key}/state.json", parse_state)

    def result(self) -> ContainerFiles:
        for told in self._told.values():
            if "pod_uid" in told and "pod" in told and "namespace" in told:
                self._pods.setdefault(told["pod_uid"], (told["namespace"], told["pod"]))
        by_id = {key: ContainerFile(container_id=key, **told) for key, told in self._told.items()}
        return ContainerFiles(by_id, self._pods, tuple(self._unread))

    def _docker_container(self, key: str) -> None:
        self._tell(key, DOCKER_LIB, {"runtime": "docker"})
        if "container" not in self._told[key]:
            self._read(key, f"{DOCKER_LIB}/{key}/config.v2.json", parse_config)

    def _read(self, key: str, path: str, parse: Callable[[bytes], dict[str, str | bool]]) -> bool:
        """Whether ``path`` told something about ``key``."""
        if self._configs_left <= 0:
            return False
        self._configs_left -= 1
        if not self._configs_left:
            words = f"more than {CONFIGS_MOST} containers without a name; the rest was not asked"
            self._unread.append(Unread(path, "too_big", words))
        told = read_as(self._host, path, parse, CONFIG_LIMIT_BYTES)
        if isinstance(told, Unread):
            self._note(told)
            return False
        self._tell(key, path, told)
        return True

    def _tell(self, key: str, source: str, told: Mapping[str, str | bool]) -> None:
        """What was known first stays: names of files before what a config claims."""
        known = self._told.setdefault(key, {"source": source})
        for field, value in told.items():
            known.setdefault(field, value)

    def _told_of(self, key: str) -> Mapping[str, Any]:
        return self._told.get(key, {})

    def _ids(self, folder: str) -> Iterator[str]:
        return (n[:-1] for n in self._names(folder) if n.endswith("/") and ID.match(n[:-1]))

    def _names(self, folder: str) -> Iterable[str]:
        names = self._host.names(folder)
        if isinstance(names, Unread):
            self._note(names)
            return ()
        return names

    def _note(self, unread: Unread) -> None:
        """Absent only means that this runtime is not here, or that a container just ended."""
        if unread.why not in ("absent", "vanished"):
            self._unread.append(unread)
