# SPDX-License-Identifier: Apache-2.0
"""One sentence in a killed container's termination message, for ``kubectl describe pod``.

The kubelet makes the file ``pods/UID/containers/NAME/HASH`` of its own folder anew for each start
of a container, mounts it (terminationMessagePath), and shows the last 4,096 bytes of it once the
container has ended (pkg/kubelet/kuberuntime: ``makeMounts``, ``getTerminationMessage``).  So our
sentence is put behind whatever the container wrote.  Everything below the kubelet's folder is
taken for hostile: no link is followed, only a regular file with one name is written, and nothing
of it is read but its last byte.

Which NAME a container id has is told by its OCI config.  containerd removes that as soon as the
container is dead, which may be sooner than we look; then the kubelet's link in /var/log/containers
tells it, and a pod of one container needs nobody to tell.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from seawall.cgroup_paths import place_of
from seawall.guard.tell.plain import plain
from seawall.kubelet_folders import ROOTS
from seawall.kubelet_names import RUNTIME_UNITS, UNITS

KUBELET: Final = ROOTS
CONFIGS: Final = (
    "/run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json",
    "/run/containerd/io.containerd.runtime.v2.task/moby/{id}/config.json",
    "/run/docker/containerd/daemon/io.containerd.runtime.v2.task/moby/{id}/config.json",
    "/run/k3s/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json",
    "/run/k0s/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json",
    "/var/snap/microk8s/common/run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}/config.json",
    "/run/containers/storage/overlay-containers/{id}/userdata/config.json",
)
LOG_LINKS: Final = "/var/log/containers"
MOST_BYTES: Final = 4096
"""What the kubelet shows of one container."""
_WORDS_MOST: Final = 1024
_CONFIG_MOST: Final = 2 << 20
_FILES_MOST: Final = 16
_LINKS_MOST: Final = 10_000
"""Links to logs, or files of one container: one more for each time that it was started."""
_ID: Final = re.compile(r"([0-9a-f]{64})(?:\.scope)?/?\Z")
_UID: Final = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}"
                         r"[-_][0-9a-f]{12}|[0-9a-f]{32})")  # fmt: skip
_NODE_UNITS: Final = frozenset({*UNITS, *RUNTIME_UNITS})
"""Below whose names pods may be: containerd's with two drivers mixed up."""
_BELOW: Final = re.compile(r"pods/([0-9a-f-]+)/containers/([a-z0-9][a-z0-9-]*)/([0-9a-f]{1,16})\Z")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class MessagePlaces(NamedTuple):
    """Where termination messages are; ``roots`` are tried in order (a guard in a container)."""

    kubelet: tuple[str, ...] = KUBELET
    configs: tuple[str, ...] = CONFIGS
    roots: tuple[str, ...] = ("",)
    log_links: str = LOG_LINKS


class KilledContainer(NamedTuple):
    """The container whose message it is."""

    cgroup: str
    uid: str
    """Of its pod, with dashes."""
    unix_seconds: float
    """When: what began later is the container's next life."""


def write(request: dict[str, Any], places: MessagePlaces) -> dict[str, Any]:
    """In the aide's child: ``path`` of each file that has the sentence now, or ``problem``."""
    path = str(request.get("cgroup", ""))
    words = plain(str(request.get("words", "")), _WORDS_MOST)
    uid = pod_of(path)
    if not uid:
        return {"note": "no pod: it has no termination message"}
    if folder := str(request.get("kubelet_root") or ""):
        places = places._replace(kubelet=(folder,))
    at = request.get("unix_seconds")
    seconds = float(at) if isinstance(at, int | float) else float("inf")
    killed = KilledContainer(path, uid, seconds)
    problems: list[str] = []
    for root in places.roots:
        written: list[str] = []
        for kubelet, below in message_files(killed, places, root):
            problem = append(kubelet, below, words)
            (problems if problem else written).append(problem or f"{kubelet}/{below}")
        if written:
            return {"path": " ".join(written)[:1000], "problem": "; ".join(problems)[:1000]}
        # Here it can only be read (the unit's ProtectSystem=): perhaps not through the next root.
    return {"problem": "; ".join(problems)[:1000] or "its termination message was not found"}


def pod_of(path: str) -> str:
    """The uid of the pod that it is or is in, with dashes; empty: the kubelet made none of it.

    A container, a user and a service with ``Delegate=`` name what is below them as they like.
    """
    place, match = place_of(path), _UID.search(path)
    uid = match[1].replace("_", "-") if match else ""
    if match is None or place.is_delegated or place.pod_uid != uid:
        return ""
    above = path[: match.start()].split("/")[:-1]
    units = {part for part in above if part.endswith((".service", ".scope"))}
    return uid if units <= _NODE_UNITS else ""


def message_files(
    killed: KilledContainer, places: MessagePlaces, root: str = ""
) -> list[tuple[str, str]]:
    """``(kubelet's folder, path below it)`` of one container, or of each of a whole pod."""
    container = _ID.search(killed.cgroup)
    kubelets = [root + folder for folder in places.kubelet if os.path.isdir(root + folder)]
    if container is None:
        files = [(k, below) for k in kubelets for below in _newest(k, killed)]
    else:
        files = list(_from_configs(container[1], killed.uid, places, root))
        name = "" if files else _from_log_link(root + places.log_links, container[1], killed)
        files = files or [(k, b) for k in kubelets for b in _newest_of_one(k, killed, name)]
    return files[:_FILES_MOST]


def append(kubelet: str, below: str, words: str) -> str:
    """Why the sentence is not there; empty: it is."""
    try:
        fd = _opened(kubelet, below)
    except OSError as error:
        return f"{below}: {error.strerror}"
    try:
        size = os.fstat(fd).st_size
        last = os.pread(fd, 1, size - 1) if size else b"\n"
        line = (b"" if last == b"\n" else b"\n") + words.encode("ascii") + b"\n"
        is_whole = os.write(fd, line[:MOST_BYTES]) == len(line[:MOST_BYTES])
    except OSError as error:
        return f"{below}: {error.strerror}"
    finally:
        os.close(fd)
    return "" if is_whole else f"{below}: {os.strerror(errno.ENOSPC)}"


def _opened(kubelet: str, below: str) -> int:
    """Component by component; the kubelet's own folder may be a link of the administrator's.

    Looked at before it is opened: to open a device does something already.
    """
    *folders, name = below.split("/")
    at = os.open(kubelet, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, _FOLDER, dir_fd=at)
            os.close(at)
            at = inner
        seen = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    try:
        status = os.fstat(seen)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EINVAL, "is no plain file of its own")
        return os.open(f"/proc/self/fd/{seen}", os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    finally:
        os.close(seen)


def _from_configs(
    container: str, uid: str, places: MessagePlaces, root: str
) -> Iterator[tuple[str, str]]:
    """The one mount of its OCI config that is a container's file below a kubelet's folder."""
    for config in places.configs:
        for source in _sources(root + config.format(id=container)):
            for kubelet in places.kubelet:
                below = source[len(kubelet) + 1 :] if source.startswith(kubelet + "/") else ""
                match = _BELOW.match(below)
                if match is not None and match[1].replace("-", "") == uid.replace("-", ""):
                    yield root + kubelet, below
                    return


def _sources(path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    with open(fd, "rb") as file:
        data = file.read(_CONFIG_MOST + 1)
    try:
        mounts = json.loads(data)["mounts"] if len(data) <= _CONFIG_MOST else []
        return [m["source"] for m in mounts if isinstance(m.get("source"), str)]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return []


def _from_log_link(folder: str, container: str, killed: KilledContainer) -> str:
    """Its name, by the kubelet's link ``POD_NAMESPACE_NAME-ID.log`` to the log; or empty."""
    try:
        with os.scandir(folder) as entries:
            for entry, _ in zip(entries, range(_LINKS_MOST), strict=False):
                if entry.name.endswith(f"-{container}.log"):
                    is_its = killed.uid in os.readlink(entry.path)
                    name = entry.name.rpartition("_")[2].removesuffix(f"-{container}.log")
                    return name if is_its else ""
    except OSError:
        pass
    return ""


def _newest_of_one(kubelet: str, killed: KilledContainer, name: str) -> list[str]:
    """Without a ``name``: of the only container that there is."""
    below = list(_newest(kubelet, killed))
    return [one for one in below if one.split("/")[3] == name] if name else below[: len(below) == 1]


def _newest(kubelet: str, killed: KilledContainer) -> Iterator[str]:
    """Of each container of the pod, the file of its last start before the kill.  When all are
    younger the clock was set back since: then the youngest.
    """
    top = f"pods/{killed.uid}/containers"
    for name in _names(f"{kubelet}/{top}"):
        starts, before = [], []
        for number in _names(f"{kubelet}/{top}/{name}", _LINKS_MOST):
            try:
                seen = os.stat(f"{kubelet}/{top}/{name}/{number}", follow_symlinks=False)
            except OSError:
                continue
            starts.append((seen.st_ctime, number))
            if min(seen.st_atime, seen.st_mtime, seen.st_ctime) <= killed.unix_seconds:
                before.append(starts[-1])
        if starts and _BELOW.match(below := f"{top}/{name}/{max(before or starts)[1]}"):
            yield below


def _names(folder: str, most: int = _FILES_MOST) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:most]
    except OSError:
        return []
