# SPDX-License-Identifier: Apache-2.0
"""Whether a container is a device plugin for certain: before it is ended, its name is not enough.

A plugin registers through a socket in the kubelet's folder of device plugins, so that folder is
mounted into it (k8s.io/kubelet/pkg/apis/deviceplugin).  Whoever may mount the host's folders was
given that by the cluster's owner; a pod may be called anything.
"""

from typing import Final, Literal, TypeAlias

from seawall.host.host import Unread
from seawall.readings import mountinfo
from seawall.readings.mountinfo import Mount, Mountinfo
from seawall.readings.process import Processes
from seawall.readings.reading import read_as
from seawall.readings.snapshot import Snapshot

Proof: TypeAlias = Literal["proven", "disproven", "unseen"]
_OWN_MOUNTS: Final = "/proc/self/mountinfo"
KUBELET: Final = "/var/lib/kubelet"
FOLDER: Final = f"{KUBELET}/device-plugins"
"""A constant of the kubelet's, whatever its --root-dir."""
STARTING: Final = ("runc:[", "crun", "youki")
"""What a runtime's own process is called before it becomes the container's: its mounts and its
/dev may still be the host's."""


def proof(snapshot: Snapshot, pid: int) -> Proof:
    """Whether a process is in a device plugin's container, by what is mounted there."""
    processes = snapshot.get(Processes)
    seen = None if isinstance(processes, Unread) else processes.by_pid.get(pid)
    if seen is not None and seen.comm.startswith(STARTING):
        return "unseen"
    own = read_as(snapshot.host, _OWN_MOUNTS, mountinfo.parse)
    its = read_as(snapshot.host, f"/proc/{pid}/mountinfo", mountinfo.parse)
    if isinstance(own, Unread) or isinstance(its, Unread) or is_hosts(own, its):
        return "unseen"
    return "proven" if has_kubelets_folder(own, its) else "disproven"


def has_kubelets_folder(own: Mountinfo, its: Mountinfo) -> bool:
    """By filesystem and folder of it: where it is mounted in the container does not matter.  The
    folder itself or the kubelet's: whoever mounts all of /var may be anybody's backup.
    """
    places = _places(own)
    return any(
        (mount.device, mount.root) in places for mount in its.mounts if mount.mount_point != "/"
    )


def is_hosts(own: Mountinfo, its: Mountinfo) -> bool:
    """Whether it has the root of whoever looks: then it is in no container, or not yet."""
    mine, that = _mount_of(own, "/"), _mount_of(its, "/")
    return mine is None or that is None or (mine.device, mine.root) == (that.device, that.root)


def _places(own: Mountinfo) -> set[tuple[str, str]]:
    """Device and folder of it; of the kubelet's too where both are of one mount."""
    home, above = _mount_of(own, FOLDER), _mount_of(own, KUBELET)
    paths = {FOLDER: home} | ({KUBELET: above} if home == above else {})
    return {
        (mount.device, _join(mount.root, path[len(mount.mount_point.rstrip("/")) :]))
        for path, mount in paths.items()
        if mount is not None
    }


def _mount_of(own: Mountinfo, path: str) -> Mount | None:
    """The last of the innermost ones hides the others."""
    found = [mount for mount in own.mounts if _holds(mount.mount_point, path)]
    longest = max((len(mount.mount_point) for mount in found), default=0)
    return next((mount for mount in reversed(found) if len(mount.mount_point) == longest), None)


def _holds(folder: str, path: str) -> bool:
    return f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _join(root: str, rest: str) -> str:
    return f"{root.rstrip('/')}{rest}" or "/"
