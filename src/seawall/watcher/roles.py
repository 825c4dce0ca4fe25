# SPDX-License-Identifier: Apache-2.0
"""Why a workload is protected: what the node cannot do without, by evidence of the host.

A container chooses its image, its processes' names and what is in its files, so none of these
protects it.  What it does not choose, best first: the cgroup in which the host put it, the uid
that the kubelet made (the API server gives every pod an uid with dashes, whatever its annotations
say of ``kubernetes.io/config.source``), kube-system, which is nobody's to make, and the host's
folders that it was given.  A namespace called as an operator's, or the -997 of a priority class,
is only claimed (``role_claims``).  Every role says how it is known.

Pure.  Sources: pkg/kubelet/config/common.go (the uid of a static pod is a hash without dashes),
pkg/kubelet/qos/policy.go (-997 for node-critical pods, and for all Guaranteed ones), the device
manager's and plugin watcher's folders below the kubelet's (``kubelet_folders``).
"""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from seawall import kubelet_names
from seawall.cgroup_paths import Qos
from seawall.kubelet_folders import FOLDER
from seawall.role_claims import claimed_role

_STATIC_UID: Final = re.compile(r"[0-9a-f]{32}\Z")
_SYSTEM_NAMESPACES: Final = frozenset({"kube-system"})
_CRITICAL_ADJ: Final = -997
_NEVER_ADJ: Final = -998
"""And below: the kubelet's own (-999), the pause container's (-998)."""

# Folders of the host that only their own kind of daemon is given: (folder, role).  The folder
# itself, not what lies in it: libraries and pipes for every GPU program lie in /run/nvidia.
# A path that ends with "/" means what is in it.
_FOLDERS: Final = (
    ("/etc/cni", "network (CNI)"),
    ("/etc/cni/", "network (CNI)"),
    ("/opt/cni", "network (CNI)"),
    ("/opt/cni/", "network (CNI)"),
    ("/run/nvidia", "GPU driver container"),
    ("/run/nvidia/driver", "GPU driver container"),
    ("/run/nvidia/validations", "GPU driver container"),
    ("/var/lib/rook", "storage daemon"),
    ("/var/lib/rook/", "storage daemon"),
    ("/var/lib/ceph", "storage daemon"),
    ("/var/lib/longhorn", "storage daemon"),
    ("/var/lib/osd", "storage daemon"),
    ("/etc/pwx", "storage daemon"),
    ("/var/lib/glusterd", "storage daemon"),
    ("/etc/iscsi", "storage daemon"),
)
# Those in the kubelet's folder, by their names; the first that was given counts.
_OF_KUBELET: Final = (
    ("device-plugins", "device plugin"),
    ("plugins_registry", "CSI or device driver"),
    ("plugins", "CSI driver"),
    ("pods", "CSI driver"),
    ("", "CSI driver"),
)
# (namespaces, beginnings of names of pods, role): any of these namespaces that is not there yet
# is made by whoever may make one, so this is a claim.  The daemons themselves are given folders.
_OPERATORS: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (r"(nvidia-)?gpu-operator(-resources)?",
     ("nvidia-device-plugin", "nvidia-driver", "nvidia-container-toolkit", "nvidia-mig",
      "nvidia-operator-validator", "nvidia-dcgm", "gpu-feature-discovery", "nvidia-vgpu",
      "nvidia-sandbox", "nvidia-vfio", "nvidia-kata", "nvidia-fs", "nvidia-gdr", "nvidia-peermem"),
     "GPU operator"),
    (r"kube-amd-gpu|amd-gpu-operator|inteldeviceplugins-system|intel-gpu", ("",),
     "device plugin or driver container"),
    (r"calico-system|tigera-operator|cilium|kube-flannel|kube-router|ovn-kubernetes", ("",),
     "network (CNI)"),
    (r"openshift-(sdn|ovn-kubernetes|multus)|metallb-system|istio-cni", ("",), "network (CNI)"),
    (r"rook-ceph(-.+)?|longhorn-system|portworx|openebs|glusterfs|openshift-storage", ("",),
     "storage daemon"),
    (r"linstor|piraeus-datastore", ("",), "storage daemon"),
)  # fmt: skip
_OPERATORS_FOUND: Final = tuple((re.compile(f"(?:{n})\\Z"), b, r) for n, b, r in _OPERATORS)

# Units of the host's own manager: root named them.
_UNITS: Final[tuple[tuple[str, str], ...]] = (
    # Not user@N.service: with very many cgroups in it that is one workload, and its user's.
    (r"init\.scope|systemd-.+|dbus(-broker)?\.(service|socket)", "systemd"),
    (r"(ssh|sshd|ssh@.+|sshd@.+)\.(service|socket)", "sshd"),
    ("|".join(map(re.escape, kubelet_names.UNITS)), "kubelet"),
    (r"(k0s.*|rke2-.+|microk8s.*|snap\.microk8s.+|kube-proxy)\.service", "kubelet"),
    (r"(containerd|crio|cri-o|docker|dockerd|podman|cri-docker)\.(service|socket)",
     "container runtime"),
    (r"(libpod|crio)-conmon-.+\.scope", "monitor of a container"),
    (r"nvidia-(persistenced|fabricmanager|imex|dcgm|powerd|gridd)\.service", "GPU driver daemon"),
    (r"nv-?(fabricmanager|hostengine)\.service|amdgpu.*\.service", "GPU driver daemon"),
    (r"(nvidia-)?(cuda-)?mps.*\.service", "MPS server, whose memory is its clients'"),
    (r"(.+_)?(slurm(d|stepd|ctld|dbd|restd)|sackd|munge)(_.+)?\.(service|scope)",
     "Slurm: jobs end with it"),
    (r"(ceph.*|gluster.*|iscsi.*|open-iscsi|multipathd|lvm2-.+|drbd.*|zfs-.+)\.service",
     "storage daemon"),
    (r"(rpc-.+|nfs-.+|portworx|px-.+|lustre.*|beegfs.*|weka.*|rdma-.+|openibd)\.service",
     "storage daemon"),
    (r"(gpfs|mmsdrserv|mmfs).*\.service", "storage daemon"),
    (r"(NetworkManager|networking|network|wpa_supplicant|chronyd?|ntpd?|irqbalance)\.service",
     "service of the host"),
    (r"(rngd|auditd|polkit|rsyslog|(serial-)?getty@.+|watchdog|seawall.*|earlyoom|nohang)\.service",
     "service of the host"),
)  # fmt: skip
_UNITS_FOUND: Final = tuple((re.compile(f"(?:{pattern})\\Z"), role) for pattern, role in _UNITS)

# Programs of the host's own cgroups, by the file that they run (a file of root's).
_PROGRAMS: Final = {
    **dict.fromkeys(kubelet_names.PROGRAMS, "kubelet"),
    "containerd": "container runtime", "dockerd": "container runtime",
    "crio": "container runtime", "sshd": "sshd",
    **dict.fromkeys(
        ("slurmd", "slurmstepd", "slurmctld", "slurmdbd", "slurmrestd", "sackd", "munged"), "Slurm"
    ),
    "nvidia-persistenced": "GPU driver daemon", "nv-fabricmanager": "GPU driver daemon",
    "nvidia-cuda-mps-server": "MPS server, whose memory is its clients'",
    "nvidia-cuda-mps-control": "MPS server, whose memory is its clients'",
    "ceph-osd": "storage daemon", "ceph-mon": "storage daemon", "ceph-mds": "storage daemon",
    "ceph-mgr": "storage daemon", "glusterfsd": "storage daemon", "glusterd": "storage daemon",
    "iscsid": "storage daemon", "multipathd": "storage daemon", "mmfsd": "storage daemon",
    "wekanode": "storage daemon",
}  # fmt: skip
_USERS: Final = "/user.slice/"
"""Sessions: each has a process of sshd in it."""


class RoleFacts(NamedTuple):
    """What the host tells of one workload."""

    cgroup: str
    is_container: bool
    is_delegated: bool = False
    """Below a container or a user's manager, who made up every name here."""
    unit: str = ""
    namespace: str = ""
    """By the kubelet's folders or the runtime's file, never by the container's own."""
    pod: str = ""
    pod_uid: str = ""
    qos: Qos | None = None
    is_sandbox: bool = False
    adj: int | None = None
    folders: Sequence[str] = ()
    """Of the host, that were mounted into it."""
    programs: Sequence[str] = ()
    """Names of the files that its processes run, for workloads of the host: files of root's
    in the host's own tree."""


def role_of(facts: RoleFacts) -> str:
    """Why it is protected and how that is known; empty when nothing speaks for it."""
    if facts.is_delegated:
        return ""  # whoever made it up could have called it anything
    if facts.is_container:
        return _of_container(facts)
    return _of_host(facts)


def _of_container(facts: RoleFacts) -> str:
    if _STATIC_UID.match(facts.pod_uid) and facts.qos is not None:
        return "static pod (its uid is the kubelet's own hash)"
    if facts.namespace in _SYSTEM_NAMESPACES:
        return f"part of the cluster (namespace {facts.namespace})"
    if role := _by_kubelets_folders(facts.folders):
        return role
    for home, role in _FOLDERS:
        if any(_is_given(folder, home) for folder in facts.folders):
            return f"{role} (the host's {home.rstrip('/')} is mounted into it)"
    for namespaces, names, role in _OPERATORS_FOUND:
        if namespaces.match(facts.namespace) and facts.pod.startswith(names):
            return claimed_role("namespace", f"{role} (namespace {facts.namespace})")
    return _by_adj(facts)


def _by_kubelets_folders(folders: Sequence[str]) -> str:
    found = [match for folder in folders if (match := FOLDER.match(folder))]
    for name, role in _OF_KUBELET:
        for match in found:
            if (match["name"] or "").partition("/")[0] == name:
                where = f"{match['root']}/{name}".rstrip("/")
                return f"{role} (the host's {where} is mounted into it)"
    return ""


def _is_given(folder: str, home: str) -> bool:
    return folder.startswith(home) if home.endswith("/") else folder.rstrip("/") == home


def _by_adj(facts: RoleFacts) -> str:
    """-997 is the kubelet's word for who asked for system-node-critical; Guaranteed pods all have
    it.  Less than that takes CAP_SYS_RESOURCE of the host's own user namespace.
    """
    if facts.adj is None or facts.is_sandbox:
        return ""
    if facts.adj <= _NEVER_ADJ and facts.qos is not None:
        return f"node-critical pod (oom_score_adj {facts.adj}, which only root can set)"
    if facts.adj == _CRITICAL_ADJ and facts.qos not in (None, "Guaranteed"):
        return claimed_role("priority class", f"node-critical pod (oom_score_adj {facts.adj})")
    return ""


def _of_host(facts: RoleFacts) -> str:
    unit = facts.unit.rpartition("/")[2] if facts.unit else ""
    for pattern, role in _UNITS_FOUND:
        if unit and pattern.match(unit):
            return f"{role} (unit {unit})"
    if facts.cgroup.startswith(_USERS):
        return ""  # anybody may start the host's programs
    for program in facts.programs:
        if program in _PROGRAMS:
            return f"{_PROGRAMS[program]} (the host's own program {program})"
    return ""
