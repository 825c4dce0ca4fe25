"""Why a workload is protected: evidence of the host protects, what a container says does not."""

import pytest

from seawall.guard.tell import termination
from seawall.host import pod_resources
from seawall.kubelet_folders import ROOTS
from seawall.readings import kubelet_devices
from seawall.role_claims import is_claimed
from seawall.watcher.roles import RoleFacts, role_of

UID = "3f0c9a4e-0b1d-4c61-9f4e-2d8a1c6b7e50"
MICROK8S = "/var/snap/microk8s/common/var/lib/kubelet"
HASH = "3f0c9a4e0b1d4c619f4e2d8a1c6b7e50"


def container(**told: object) -> RoleFacts:
    return RoleFacts(**{"cgroup": "/kubepods/x", "is_container": True, "qos": "Burstable",
                    "pod_uid": UID, "namespace": "shop", **told})  # type: ignore[arg-type]  # fmt: skip


def unit(name: str, **told: object) -> RoleFacts:
    return RoleFacts(cgroup=f"/system.slice/{name}", is_container=False, unit=name, **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (container(pod_uid=HASH), "static pod"),
        (container(namespace="kube-system"), "part of the cluster"),
        (container(folders=("/var/lib/kubelet/device-plugins",)), "device plugin"),
        (container(folders=("/etc/hosts", "/var/lib/kubelet/plugins/csi.ceph.com")), "CSI driver"),
        (container(folders=("/var/lib/kubelet/pods/",)), "CSI driver"),
        (container(folders=("/var/lib/kubelet",)), "CSI driver"),
        (container(folders=("/var/lib/k0s/kubelet/plugins/smb.csi.k8s.io",)), "CSI driver"),
        (container(folders=("/var/lib/k0s/kubelet/plugins_registry/",)), "CSI or device driver"),
        (container(folders=(f"{MICROK8S}",)), "CSI driver"),
        (container(folders=(f"{MICROK8S}/device-plugins",)), "device plugin"),
        (container(folders=("/data/kubelet/pods",)), "CSI driver"),
        (container(folders=("/opt/rke/var/lib/kubelet/plugins/x", "/data/kubelet/device-plugins")),
         "device plugin (the host's /data/kubelet/device-plugins is mounted into it)"),
        (container(folders=("/opt/cni/bin",)), "network (CNI)"),
        (container(folders=("/run/nvidia/driver",)), "GPU driver container"),
        (container(folders=("/var/lib/rook/mon-a/data",)), "storage daemon"),
        (container(namespace="longhorn-system", folders=("/var/lib/longhorn",)), "storage daemon"),
        (container(adj=-999), "node-critical pod"),
        (unit("kubelet.service"), "kubelet"),
        (unit("k0scontroller.service"), "kubelet"),
        (unit("snap.kubelet.daemon.service"), "kubelet"),
        (unit("snap.microk8s.daemon-kubelite.service"), "kubelet"),
        (unit("my.service", programs=("k3s",)), "kubelet"),
        (unit("ssh.service"), "sshd"),
        (unit("systemd-journald.service"), "systemd"),
        (unit("init.scope"), "systemd"),
        (unit("nvidia-persistenced.service"), "GPU driver daemon"),
        (unit("nvidia-fabricmanager.service"), "GPU driver daemon"),
        (unit("nvidia-mps.service"), "MPS server"),
        (unit("slurmstepd.scope"), "Slurm"),
        (unit("node1_slurmstepd.scope"), "Slurm"),
        (unit("munge.service"), "Slurm"),
        (unit("hpc.service", programs=("slurmctld",)), "Slurm"),
        (unit("hpc.service", programs=("munged",)), "Slurm"),
        (unit("ceph-osd@3.service"), "storage daemon"),
        (unit("multipathd.service"), "storage daemon"),
        (unit("gpfs.service"), "storage daemon"),
        (unit("my.service", programs=("mmfsd",)), "storage daemon"),
        (unit("weka-agent.service"), "storage daemon"),
        (unit("my.service", programs=("nvidia-cuda-mps-server",)), "MPS server"),
        (unit("my.service", programs=("bash", "slurmstepd")), "Slurm"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_evidence_of_the_host_protects(facts: RoleFacts, words: str) -> None:
    assert role_of(facts).startswith(words)
    assert not is_claimed(role_of(facts))


@pytest.mark.parametrize(
    "facts",
    [
        container(),
        container(pod="nvidia-device-plugin-daemonset", namespace="shop"),
        container(pod="kube-apiserver-node1", namespace="kube-system-2"),
        container(namespace="kube-system\n"),
        # What the runtime gives to every GPU program, and the kubelet to every pod.
        container(folders=("/run/nvidia/mps/nvidia.com/gpu/pipe", "/run/nvidia-persistenced")),
        container(folders=("/run/nvidia/driver/usr/lib/libcuda.so.550",)),
        container(folders=(f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/pvc/mount",)),
        container(folders=("/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/pvc",)),
        container(folders=("/var/lib/kubelet/device-plugins-of-mine",)),
        # Below a kubelet's pods whoever makes one names volumes, claims and containers.
        *(container(folders=(f"{root}/pods/{UID}/{below}",)) for root in (*ROOTS, "/data/kubelet")
          for below in ("volume-subpaths/kubelet/plugins/0", "volumes/x/kubelet/pods",
                        "volumes/kubernetes.io~empty-dir/kubelet", "kubelet/plugins")),
        # By the shape only what daemons are given, and near the root of all.
        container(folders=("/var/log/kubelet", "/etc/kubernetes/kubelet", "/data/kubelet")),
        container(folders=("/a/b/c/d/e/kubelet/plugins", "/data/kubelet/plugins/x/y")),
        container(folders=("/data/../kubelet/pods", "/data/kubelet/pods/../x", "kubelet/pods")),
        container(folders=("/data/my-kubelet/pods", "/data/kubelet/pods2", "/d\x1b/kubelet/pods")),
        unit("kubeletXservice"),
        container(namespace="gpu-operator", pod="hog"),
        container(programs=("nvidia-persistenced",)),
        # Every Guaranteed pod has -997; a pause container has -998.
        container(adj=-997, qos="Guaranteed"),
        container(adj=-998, is_sandbox=True),
        # An uid that is no hash, outside Kubernetes, or in capital letters.
        container(pod_uid=HASH, qos=None),
        container(pod_uid=HASH.upper()),
        container(pod_uid=HASH + "\n"),
        # Docker's own container of root with an adj of its own choice.
        RoleFacts(cgroup="/docker/x", is_container=True, adj=-1000),
        # Made inside a container or below a user's manager: under any name.
        RoleFacts(cgroup="/docker/x/kubelet.service", is_container=False, is_delegated=True,
              unit="kubelet.service"),
        RoleFacts(cgroup="/user.slice/u", is_container=False, is_delegated=True,
              unit="user@1000.service/slurmd.service", programs=("slurmd",)),
        unit("session-3.scope"),
        RoleFacts(cgroup="/user.slice/user-1000.slice/session-3.scope", is_container=False,
              unit="session-3.scope", programs=("sshd", "nvidia-cuda-mps-server")),
        # With more than 512 cgroups made in it, a user's manager is one workload.
        unit("user@1000.service"),
        unit("shop.service"),
        unit("kubelet.service.d.scope"),
        unit("evil\nkubelet.service"),
        unit("my.service", programs=("nvidia-cuda-mps-server2", "kubelet\n")),
    ],
    ids=range(47),
)  # fmt: skip
def test_what_a_container_chooses_protects_nobody(facts: RoleFacts) -> None:
    assert role_of(facts) == ""


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (container(namespace="gpu-operator", pod="nvidia-driver-daemonset-x7x2p"), "GPU operator"),
        (container(namespace="longhorn-system", pod="instance-manager-e"), "storage daemon"),
        (container(namespace="rook-ceph-mine", pod="hog"), "storage daemon"),
        (container(namespace="cilium", pod="hog", qos="BestEffort"), "network (CNI)"),
        (container(adj=-997), "node-critical pod"),
        (container(adj=-997, qos="BestEffort", namespace="team-a"), "node-critical pod"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_tenant_may_write_down_is_a_claim(facts: RoleFacts, words: str) -> None:
    role = role_of(facts)
    assert is_claimed(role)
    assert words in role


def test_every_role_says_how_it_is_known() -> None:
    assert role_of(container(pod_uid=HASH)) == "static pod (its uid is the kubelet's own hash)"
    given = role_of(container(folders=("/opt/cni/bin",)))
    assert given == "network (CNI) (the host's /opt/cni is mounted into it)"
    assert role_of(unit("sshd.service")) == "sshd (unit sshd.service)"


def test_all_know_the_same_folders_of_kubelets() -> None:
    assert termination.KUBELET == ROOTS
    assert [path.partition("/device-plugins/")[0] for path in kubelet_devices.PATHS] == list(ROOTS)
    assert [path.partition("/pod-resources/")[0] for path in pod_resources.SOCKETS] == list(ROOTS)
