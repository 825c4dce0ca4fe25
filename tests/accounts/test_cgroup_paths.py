"""Recorded cgroup paths of every runtime and driver, each with where its form comes from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.cgroup_paths import expand, place_of, unescape

ID = "3f404928fe6b9cc8da765bea3531567f94fda7af30f770cb06c1293622dee96d"
ID2 = "55ba2819dd45a03ed673c4a055d058ae33c15a6e0d80f045a471d6ee3b36eeb0"
UID = "1858680e-b044-4fd5-9dd4-f137e30e2180"
UID_ = UID.replace("-", "_")
STATIC = "8a1b3c5d7e9f0a2b4c6d8e0f1a2b3c4d"

KUBELET = "kubelet: pkg/kubelet/cm/cgroup_manager_linux.go, ToSystemd and ToCgroupfs"
CRI = "containerd: pkg/cri/server, getCgroupsPath"
KIND = "kind: kubelet --cgroup-root=/kubelet, its cgroups seen in a node"
UNSPLIT = "containerd without SystemdCgroup under a kubelet with it: recorded mountinfo of a pod"
CRIO = "CRI-O: internal/config/cgmgr, scope prefix crio and crio-conmon"
DOCKERD = "Docker: daemon/oci_linux.go, cgroupfs parent /docker, systemd scope prefix docker"
PARENT = "docker run --cgroup-parent"
LIBPOD = "Podman: libpod/container.go and podman inspect's CgroupPath"
LXC = "LXC 4 and LXD: lxc.cgroup.dir payload, /sys/fs/cgroup/memory/lxc.payload.NAME"
MACHINED = "systemd: machine.slice of machinectl(1) status"
NSPAWN = "systemd-nspawn"
RUNC = "runc: libcontainer/cgroups/systemd, ScopePrefix"
KATA = "Kata: docs/design/host-cgroups.md, RenameCgroupPath and resCtrlKataOverheadID"
KATA_RS = "Kata: runtime-rs, gen_overhead_path under systemd"
SYSTEMD = "systemd: systemd-cgls(1) of a desktop and a server"

# path, source, kind, runtime, id or machine, pod uid, QoS; the workload is the path itself.
CONTAINERS = [
    (f"/kubepods/burstable/pod{UID}/{ID}", KUBELET, None, ID, UID, "Burstable"),
    (f"/kubepods/besteffort/pod{UID}/{ID}", KUBELET, None, ID, UID, "BestEffort"),
    (f"/kubepods/pod{UID}/{ID}", KUBELET, None, ID, UID, "Guaranteed"),
    (f"/kubepods/burstable/pod{STATIC}/{ID}", KUBELET, None, ID, STATIC, "Burstable"),
    (
        (f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
        f"/cri-containerd-{ID}.scope"),
        CRI, "containerd", ID, UID, "Burstable",
    ),
    (
        (f"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{STATIC}.slice"
        f"/docker-{ID}.scope"),
        KUBELET, "docker", ID, STATIC, "BestEffort",
    ),
    (
        f"/kubepods.slice/kubepods-pod{UID_}.slice/crio-{ID}.scope",
        CRIO, "cri-o", ID, UID, "Guaranteed",
    ),
    (f"/kubepods/burstable/pod{UID}/crio-{ID}", CRIO, "cri-o", ID, UID, "Burstable"),
    (f"/kubelet/kubepods/burstable/pod{UID}/{ID}", KIND, None, ID, UID, "Burstable"),
    (
        ("/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
        f"/kubelet-kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope"),
        KIND, "containerd", ID, UID, "Burstable",
    ),
    (
        f"/system.slice/containerd.service/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}",
        UNSPLIT, "containerd", ID, UID, "BestEffort",
    ),
    (
        f"/kubepods-besteffort-pod{UID_}.slice:cri-containerd:{ID}",
        UNSPLIT, "containerd", ID, UID, "BestEffort",
    ),
    (f"/kubepods/burstable/pod{UID}/kata_{ID}", KATA, None, ID, UID, "Burstable"),
    (f"/kubepods/pod{UID}/kata_crio-{ID}", KATA + ", CRI-O", None, ID, UID, "Guaranteed"),
    (f"/docker/kata_{ID}", KATA, "docker", ID, None, None),
    (f"/kata_overhead/{ID}", KATA, None, ID, None, None),
    (f"/kata.slice/kata-overhead.slice/runtime-rs-{ID}.scope", KATA_RS, None, ID, None, None),
    (f"/docker/{ID}", DOCKERD, "docker", ID, None, None),
    (f"/system.slice/docker-{ID}.scope", DOCKERD, "docker", ID, None, None),
    (f"/batch/jobs/{ID}", PARENT, None, ID, None, None),
    (f"/batch.slice/docker-{ID}.scope", PARENT, "docker", ID, None, None),
    (f"/ecs/3f4a/{ID}", "Amazon ECS agent: task cgroups below /ecs", "docker", ID, None, None),
    (f"/machine.slice/libpod-{ID}.scope", LIBPOD, "podman", ID, None, None),
    (f"/libpod_parent/libpod-{ID}", LIBPOD, "podman", ID, None, None),
    (
        f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope",
        LIBPOD + ", rootless", "podman", ID, None, None,
    ),
    (
        f"/machine.slice/machine-libpod_pod_{ID2}.slice/libpod-{ID}.scope",
        LIBPOD, "podman", ID, ID2, None,
    ),
    (f"/libpod_parent/{ID2}/libpod-{ID}", LIBPOD, "podman", ID, ID2, None),
    (f"/default/{ID}", "containerd: ctr run, nerdctl run", "containerd", ID, None, None),
    (f"/system.slice/nerdctl-{ID}.scope", "nerdctl with systemd", "containerd", ID, None, None),
    ("/system.slice/runc-web.1.scope", RUNC, "runc", "web.1", None, None),
    ("/lxc.payload.web", LXC, "lxc", "web", None, None),
    ("/lxc/101", LXC + "; Proxmox", "lxc", "101", None, None),
    ("/machine.slice/systemd-nspawn@jammy.service", MACHINED, NSPAWN, "jammy", None, None),
    (r"/machine.slice/machine-web\x2d1.scope", MACHINED, NSPAWN, "web-1", None, None),
    (r"/machine.slice/machine-lxc\x2d7\x2dweb.scope", "libvirt", "lxc", "lxc-7-web", None, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "source", "runtime", "key", "uid", "qos"), CONTAINERS, ids=[c[0] for c in CONTAINERS]
)
def test_container(
    path: str, source: str, runtime: str | None, key: str, uid: str | None, qos: str | None
) -> None:
    place = place_of(path)
    assert place.kind == "container", source
    assert place.cgroup == path
    assert place.runtime == runtime
    assert (place.container_id or place.machine) == key
    assert place.pod_uid == uid
    assert place.qos == qos
    inside = place_of(path + "/init.scope")
    assert inside == place, "what a container makes of itself stays the container"


@pytest.mark.parametrize(
    ("path", "uid", "qos"),
    [
        (f"/kubepods/burstable/pod{UID}", UID, "Burstable"),
        (f"/kubepods/pod{UID}", UID, "Guaranteed"),
        (f"/kubepods.slice/kubepods-pod{UID_}.slice", UID, "Guaranteed"),
        (f"/kubelet/kubepods/besteffort/pod{UID}", UID, "BestEffort"),
        (f"/machine.slice/machine-libpod_pod_{ID}.slice", ID, None),
        (f"/user.slice/user-libpod_pod_{ID}.slice", ID, None),
        (f"/libpod_parent/{ID}", ID, None),
    ],
)
def test_pod(path: str, uid: str, qos: str | None) -> None:
    place = place_of(path)
    assert (place.kind, place.cgroup, place.pod_uid, place.qos) == ("pod", path, uid, qos)


@pytest.mark.parametrize(
    ("path", "kind", "unit", "cgroup"),
    [
        ("/", "root", None, "/"),
        ("/init.scope", "unit", "init.scope", "/init.scope"),
        ("/system.slice", "slice", "system.slice", "/system.slice"),
        ("/system.slice/ssh.service", "unit", "ssh.service", "/system.slice/ssh.service"),
        ("/system.slice/system-getty.slice/getty@tty1.service", "unit", "getty@tty1.service", None),
        (
            "/system.slice/docker.service/init",
            "unit", "docker.service", "/system.slice/docker.service",
        ),
        (
            f"/system.slice/var-lib-docker-containers-{ID}-mounts-shm.mount",
            "unit", f"var-lib-docker-containers-{ID}-mounts-shm.mount", None,
        ),
        ("/user.slice/user-0.slice/session-3.scope", "unit", "session-3.scope", None),
        ("/user.slice/user-1000.slice/user@1000.service", "unit", "user@1000.service", None),
        (
            "/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.kde.konsole-7f.scope",
            "unit", "user@1000.service/app-org.kde.konsole-7f.scope", None,
        ),
        (
            "/user.slice/user-1000.slice/user@1000.service/init.scope",
            "unit", "user@1000.service/init.scope", None,
        ),
        (
            r"/machine.slice/machine-qemu\x2d1\x2dvm.scope",
            "unit", r"machine-qemu\x2d1\x2dvm.scope", None,
        ),
        ("/kubepods", "slice", None, None),
        ("/kubepods/burstable", "slice", None, None),
        ("/kubepods.slice/kubepods-burstable.slice", "slice", "kubepods-burstable.slice", None),
        ("/docker", "cgroup", None, None),
        ("/docker/buildkit/n4eu0udvbz9vfzjy71jkvgkwh", "cgroup", None, None),
        ("/slurm/uid_1000", "cgroup", None, None),
        ("/batch/uid_1000/job_42", "cgroup", None, None),
        ("/lxc.monitor.web", "cgroup", None, None),
        ("/process_api/4c85a83b433f7ebc3e86a263c0c8dde9", "cgroup", None, None),
        ("/podinfo", "cgroup", None, None),
        ("/my\nbad\x1b[31mname", "cgroup", None, None),
    ],
)  # fmt: skip
def test_the_hosts_own_and_unknown_ones(
    path: str, kind: str, unit: str | None, cgroup: str | None
) -> None:
    place = place_of(path)
    assert (place.kind, place.unit) == (kind, unit)
    assert place.cgroup == (cgroup or path)
    assert place.container_id is None


def test_conmon_is_no_container() -> None:
    pod = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
    place = place_of(f"{pod}/crio-conmon-{ID}.scope")
    assert (place.kind, place.monitors, place.pod_uid) == ("unit", ID, UID)
    place = place_of(f"/machine.slice/libpod-conmon-{ID}.scope")
    assert (place.kind, place.monitors, place.container_id) == ("unit", ID, None)
    place = place_of(f"/kubepods/pod{UID}/crio-conmon-{ID}")
    assert (place.kind, place.monitors) == ("cgroup", ID)


STEPD = "/system.slice/slurmstepd.scope"
SLUID = "sEKNKTV3WPV500"


@pytest.mark.parametrize(
    ("job", "name"),
    [
        # Slurm: cgroup_v2.c, the drawing of its hierarchy and cgroup_p_step_create
        (f"{STEPD}/job_7", "job_7"),
        ("/system.slice/node1_slurmstepd.scope/job_7", "job_7"),  # several slurmd on one node
        ("/batch.slice/slurmstepd.scope/job_7", "job_7"),  # CgroupSlice of cgroup.conf(5)
        (f"{STEPD}/{SLUID}", SLUID),  # CgroupJobIdPaths of cgroup.conf(5), since 26.05
        # Slurm: xcgroup.c, xcgroup_create_hierarchy
        ("/slurm/uid_1000/job_42", "job_42"),
        ("/slurm_node1/uid_1000/job_42", "job_42"),
    ],
)
@pytest.mark.parametrize("below", ["", "/step_0/user/task_0", "/step_batch/slurm", "/job_8"])
def test_a_batch_job_is_one_whole_and_its_users(job: str, name: str, below: str) -> None:
    place = place_of(job + below)
    assert (place.kind, place.cgroup, place.job, place.unit) == ("cgroup", job, name, None)
    assert place.is_delegated, "its user chose what runs there"


@pytest.mark.parametrize(
    ("path", "cgroup"),
    [
        (f"{STEPD}/system", STEPD),  # where slurmstepd itself waits
        (f"{STEPD}/system/job_7", STEPD),
        (f"{STEPD}/job_x", STEPD),
        ("/system.slice/job.service/job_7", "/system.slice/job.service"),
        ("/slurm/job_7", "/slurm/job_7"),
        ("/job_7", "/job_7"),
    ],
)
def test_what_is_only_called_like_a_job(path: str, cgroup: str) -> None:
    assert (place_of(path).cgroup, place_of(path).job) == (cgroup, None)


def test_a_container_in_a_job_is_made_up() -> None:
    place = place_of(f"{STEPD}/job_7/step_0/user/task_0/{ID}")
    assert (place.kind, place.container_id, place.is_delegated) == ("container", ID, True)


@pytest.mark.parametrize("below", ["vm", "vm/inner", "run-1.scope"])
def test_what_is_in_a_pod_and_no_container_is_a_plain_cgroup_of_the_pod(below: str) -> None:
    path = f"/kubepods/burstable/pod{UID}/{below}"
    place = place_of(path)
    assert (place.kind, place.cgroup) == ("cgroup", path)
    assert (place.pod_uid, place.qos) == (UID, "Burstable")
    inside = place_of(f"{path}/{ID}")
    assert (inside.kind, inside.pod_uid, inside.qos) == ("container", UID, "Burstable")


@pytest.mark.parametrize(
    "outer",
    [f"/docker/{ID2}", f"/system.slice/docker-{ID2}.scope", "/lxc.payload.ci", "/lxc/101/ns"],
)
@pytest.mark.parametrize(
    "inner",
    [
        f"/kubelet/kubepods/burstable/pod{UID}/{ID}",
        (
            "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice"
            f"/kubelet-kubepods-burstable-pod{UID_}.slice/cri-containerd-{ID}.scope"
        ),
        f"/docker/{ID}",
        f"/system.slice/docker-{ID}.scope",
    ],
)
def test_container_in_a_container(outer: str, inner: str) -> None:
    """kind, Docker in Docker, Kubernetes in LXC.  Its names were made up in there."""
    place = place_of(outer + inner)
    assert (place.kind, place.container_id) == ("container", ID)
    assert place.is_delegated
    assert not place_of(outer).is_delegated
    assert place.pod_uid == (UID if "kubepods" in inner else None)


def test_what_a_user_made_is_delegated() -> None:
    user = "/user.slice/user-1000.slice/user@1000.service"
    assert not place_of(user).is_delegated
    assert place_of(f"{user}/kubepods/burstable/pod{UID}/{ID}").is_delegated
    assert place_of(f"{user}/app.slice/x.service").is_delegated


@pytest.mark.parametrize(
    ("written", "path"),
    [
        (f"/kubepods/burstable/pod{UID}/{ID}", f"/kubepods/burstable/pod{UID}/{ID}"),
        (
            f"kubepods-burstable-pod{UID_}.slice:cri-containerd:{ID}",
            (
                f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UID_}.slice"
                f"/cri-containerd-{ID}.scope"
            ),
        ),
        ("system.slice:docker:web", "/system.slice/docker-web.scope"),
        (":runc:web", "/system.slice/runc-web.scope"),
        ("-.slice:x:y", "/x-y.scope"),
        ("relative/path", None),
        ("a:b", None),
        ("", None),
    ],
)
def test_cgroups_path_of_an_oci_config(written: str, path: str | None) -> None:
    assert expand(written) == path


def test_unescape() -> None:
    assert unescape(r"web\x2d1\x5fa") == "web-1_a"


PARTS = st.sampled_from([
    "kubepods", "burstable", "besteffort", f"pod{UID}", "kubepods.slice", "docker", "default", ID,
    f"kubepods-burstable-pod{UID_}.slice", f"cri-containerd-{ID}.scope", f"crio-conmon-{ID}.scope",
    "user@1000.service", "app.slice", "x.service", "machine.slice", "machine-a.scope", "lxc", "",
    "slurmstepd.scope", "slurm", "uid_7", "job_7", f"kata_{ID}",
    "libpod_parent", f"libpod_pod_{ID}.slice", f"k.slice:cri-containerd:{ID}", "lxc.payload.",
]) | st.text(max_size=20)  # fmt: skip


@given(st.lists(PARTS, max_size=12))
def test_any_path_has_a_place_at_or_above_it(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    place = place_of(path)
    clean = "/" + "/".join(part for part in path.split("/") if part)
    assert clean == place.cgroup or clean.startswith(place.cgroup.rstrip("/") + "/")
    assert place_of(place.cgroup) == place
    if place.kind == "container":
        assert place.container_id or place.machine
