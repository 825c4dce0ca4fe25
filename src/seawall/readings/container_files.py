# SPDX-License-Identifier: Apache-2.0
"""Names of containers and pods, from files that are on the node already.

/var/log/containers links, /var/log/pods, the kubelet's pod folders, and each runtime's own
state under /run or /var/lib.  No network call, no client library; what may lie on a stuck
disk is read with a deadline.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from seawall.host.host import Host, Unread


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
    source: str = ""


@dataclass(frozen=True, slots=True)
class ContainerFiles:
    """The topic; never wholly unread, for a cgroup path alone says a lot."""

    by_id: Mapping[str, ContainerFile]
    pods: Mapping[str, tuple[str, str]]
    """pod uid -> (namespace, name), from /var/log/pods."""
    unread: tuple[Unread, ...]


def read(host: Host) -> ContainerFiles | Unread:
    raise NotImplementedError
