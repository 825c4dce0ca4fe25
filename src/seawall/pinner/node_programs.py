# SPDX-License-Identifier: Apache-2.0
"""The set ``node``: what a node needs to be kept, reached and repaired.

By the name of the program's file, of the host's own processes; the order is that in which the
budget is given out.  A container chooses its names, so one that is called like the network's
daemon counts only when the kubelet marked it (oom_score_adj -997: node-critical).
"""

from typing import Final

ROLES: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("the guard", ()),
    ("systemd", ("systemd", "init", "systemd-journald", "systemd-logind", "systemd-udevd",
                 "systemd-executor", "systemd-networkd", "systemd-resolved")),
    ("sshd", ("sshd", "sshd-session", "sshd-auth", "dropbear")),
    ("dbus", ("dbus-daemon", "dbus-broker", "dbus-broker-launch")),
    ("kubelet", ("kubelet", "k3s", "k3s-server", "k3s-agent", "k0s", "rke2")),
    ("container runtime", ("containerd", "crio", "dockerd", "podman", "cri-dockerd")),
    ("container runtime", ("containerd-shim", "containerd-shim-runc-v1", "containerd-shim-runc-v2",
                           "conmon", "conmonrs")),
    ("container runtime", ("runc", "crun", "youki", "nvidia-container-runtime")),
    ("network (CNI)", ("calico-node", "cilium-agent", "flanneld", "kube-proxy", "kube-router",
                       "ovs-vswitchd", "ovsdb-server", "ovnkube", "antrea-agent", "weaver",
                       "NetworkManager", "multus-daemon")),
    ("shells", ("bash", "sh", "dash", "zsh", "busybox", "login", "agetty", "getty", "su", "sudo")),
    ("tools", ("ls", "cat", "ps", "kill", "grep", "less", "top", "free", "dmesg", "mount",
               "systemctl", "journalctl", "crictl", "ctr")),
)  # fmt: skip
NETWORK: Final = "network (CNI)"
CRITICAL_ADJ: Final = -997
SHELLS: Final = next(rank for rank, (role, _) in enumerate(ROLES) if role == "shells")
"""From here on the rank is of what comes and goes all the time: its end is no news."""
_FOLDERS: Final = ("/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin")
_SELDOM: Final = frozenset(
    {"runc", "crun", "bash", "sh", "dash", "login", "su", "sudo", "sshd-session", "sshd-auth",
     *ROLES[-1][1]}
)  # fmt: skip
"""Started when they are needed: pinned although nobody runs them."""

BY_NAME: Final = {
    name: (rank, role) for rank, (role, names) in enumerate(ROLES) for name in names
}  # fmt: skip
"""Rank and role of a program's file."""


def unstarted() -> list[tuple[int, str, list[str]]]:
    """Rank, name and where the file may lie, of those that nobody may run at the moment."""
    return [
        (BY_NAME[name][0], name, [f"{folder}/{name}" for folder in _FOLDERS])
        for name in sorted(_SELDOM, key=lambda name: (BY_NAME[name][0], name))
    ]
