"""Who is who, on a node of files: rows of ``groups``, what changes, and hostile names."""

import json
import time
from pathlib import Path

import pytest
from tests.watcher.inventory_node import (
    GIB,
    IDS,
    LINKS,
    POD,
    PODS,
    STATIC,
    STATIC_POD,
    TASKS,
    UID,
    Node,
    rows,
)

from seawall.role_claims import NOT_NAMED


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node.usual(tmp_path)


def test_groups_of_a_node(node: Node) -> None:
    # 937: 1000 less 63 thousandths of 16 GiB, so less than 64/1000 of them were requested.
    web = node.container(POD, "web", 937, mounts=(f"/var/lib/kubelet/pods/{UID}/etc-hosts",))
    plugin = node.container(POD, "plugin", 999, mounts=("/var/lib/kubelet/device-plugins",))
    etcd = node.container(STATIC_POD, "etcd", 800, owner="etcd-node1", namespace="infra")
    node.cgroup("system.slice/ssh.service", 0)
    node.cgroup("system.slice/shop.service", 0)
    found = rows(node.inventory())
    assert {path: row["role"].partition(" (")[0] for path, row in found.items()} == {
        web: "", plugin: "device plugin", etcd: "static pod",
        "/system.slice/ssh.service": "sshd", "/system.slice/shop.service": "",
    }  # fmt: skip
    inode = (node.root / f"sys/fs/cgroup{web}").stat().st_ino
    assert found[web] == {
        "cgroup": web, "inode": inode, "name": "shop/cart/web", "pod": UID, "class_rank": 1,
        "adj": 937, "request": -(-64 * 16 * GIB // 1000) - 1, "role": "",
    }  # fmt: skip
    assert found[etcd]["name"] == "infra/etcd-node1/etcd"
    assert found["/system.slice/shop.service"]["class_rank"] == 3


@pytest.mark.parametrize(
    ("folder", "role"),
    [
        ("/var/lib/k0s/kubelet/plugins/smb.csi.k8s.io", "CSI driver"),
        ("/var/snap/microk8s/common/var/lib/kubelet/plugins_registry", "CSI or device driver"),
        ("/data/kubelet/device-plugins", "device plugin"),
        (f"/var/lib/k0s/kubelet/pods/{UID}/volume-subpaths/kubelet/plugins/0", ""),
        ("/data/kubelet/backup", ""),
    ],
)
def test_other_kubelets_folders_tell_the_role_too(node: Node, folder: str, role: str) -> None:
    """Through the sieve."""
    driver = node.container(POD, "plugin", 999, mounts=(folder,))
    assert rows(node.inventory())[driver]["role"].partition(" (")[0] == role


@pytest.mark.parametrize("root", ["run/containerd", "run/docker/containerd/daemon"])
def test_with_docker_the_folders_tell_the_role_too(node: Node, root: str) -> None:
    tasks = f"{root}/io.containerd.runtime.v2.task/moby"
    mounts = ("/var/lib/kubelet/device-plugins",)
    plugin = node.container(POD, "plugin", 999, mounts=mounts, runtime="docker", tasks=tasks)
    assert rows(node.inventory())[plugin]["role"].startswith("device plugin")


def test_roles_that_could_not_be_seen_are_said(node: Node) -> None:
    inventory = node.inventory()
    node.container(POD, "web", 937)
    plugin = node.container(POD, "plugin", 999, mounts=("/var/lib/kubelet/device-plugins",))
    rows(inventory)
    assert inventory.blind == []
    file = node.root / TASKS / IDS["plugin"] / "config.json"
    file.unlink()
    inventory = node.inventory()
    assert rows(inventory)[plugin]["role"] == ""
    (words,) = inventory.blind
    assert words.startswith(f"roles by the host's folders in 1 container (/{TASKS}/{IDS['plugin']}")
    for path in sorted((node.root / f"sys/fs/cgroup{plugin}").iterdir()):
        path.unlink()
    (node.root / f"sys/fs/cgroup{plugin}").rmdir()
    inventory.refresh()
    assert inventory.blind == []


def test_only_what_changed_is_told_again(node: Node) -> None:
    inventory = node.inventory()
    web = node.container(POD, "web", 937)
    first = rows(inventory)
    inventory.mark_sent(first.values(), ())
    assert rows(inventory) == {}
    node.cgroup("system.slice/new.service", 5)
    assert set(rows(inventory)) == {"/system.slice/new.service"}
    inventory.mark_sent(inventory.row_updates()[0], ())
    for file in (node.root / f"sys/fs/cgroup{web}").iterdir():
        file.unlink()
    (node.root / f"sys/fs/cgroup{web}").rmdir()
    inventory.refresh()
    assert inventory.row_updates() == ([], [web])


def test_a_path_that_comes_again_is_another_group(node: Node) -> None:
    inventory = node.inventory()
    node.cgroup("system.slice/shop.service", 0)
    inventory.mark_sent(rows(inventory).values(), ())
    home = node.root / "sys/fs/cgroup/system.slice/shop.service"
    home.rename(home.with_name("kept-so-that-its-inode-is-not-used-again"))
    node.cgroup("system.slice/shop.service", 0)
    assert rows(inventory)["/system.slice/shop.service"]["inode"] == home.stat().st_ino


def test_a_name_that_comes_later_is_told_then(node: Node) -> None:
    inventory = node.inventory()
    path = f"{POD}/cri-containerd-{IDS['web']}.scope"
    node.cgroup(path, 900)
    assert rows(inventory)["/" + path]["name"] == f"container:{IDS['web'][:12]}"
    assert rows(inventory)["/" + path]["role"] == NOT_NAMED, "it may be in kube-system"
    node.write(f"{LINKS}/cart_shop_web-{IDS['web']}.log", "")
    assert rows(inventory)["/" + path]["name"] == "shop/cart/web"
    assert rows(inventory)["/" + path]["role"] == ""


def test_a_name_that_never_comes_is_not_waited_for(node: Node) -> None:
    """A container of plain containerd has none."""
    inventory = node.inventory()
    path = f"{POD}/cri-containerd-{IDS['web']}.scope"
    node.cgroup(path, 900)
    found = [rows(inventory)["/" + path]["role"] for _ in range(4)]
    assert found == [NOT_NAMED, NOT_NAMED, NOT_NAMED, ""]


def test_what_a_container_makes_below_itself_is_no_group(node: Node) -> None:
    dind = node.container(POD, "dind", 999)
    inner = f"{dind}/kubepods.slice/kubepods-pod{STATIC}.slice"
    node.cgroup(f"{inner[1:]}/cri-containerd-{IDS['etcd']}.scope", 999)
    node.cgroup(f"{dind[1:]}/kubelet.service", 999)
    inventory = node.inventory()
    assert set(rows(inventory)) == {dind}
    group = inventory.group_of(f"{inner}/cri-containerd-{IDS['etcd']}.scope")
    assert group is not None
    assert group.cgroup == dind


def test_users_have_the_name_that_the_node_has_for_them(node: Node) -> None:
    """No lookup that could hang, and nothing that cannot be printed; the number is certain."""
    node.write(
        "etc/passwd",
        "root:x:0:0::/:\nalice:x:1000:1000::/:\n\x1b[31mevil:x:1001:1:::\nx@y/z:x:1002:1:::\n",
    )  # fmt: skip
    node.cgroup("user.slice")
    for uid in (0, 1000, 1001, 1002, 70000):
        node.cgroup(f"user.slice/user-{uid}.slice")
    node.cgroup("user.slice/user-1000.slice/session-3.scope", 0)
    node.cgroup("user.slice/user-x.slice")
    inventory = node.inventory()
    found = rows(inventory)
    assert {path.rpartition("/")[2]: row["name"] for path, row in found.items()} == {
        "user-0.slice": "user:0@root", "user-1000.slice": "user:1000@alice",
        "user-1001.slice": "user:1001", "user-1002.slice": "user:1002",
        "user-70000.slice": "user:70000", "session-3.scope": "unit:session-3.scope",
    }  # fmt: skip
    assert {row["role"] for row in found.values()} == {""}
    assert {one.cgroup for one in inventory.groups()} == {
        "/user.slice/user-1000.slice/session-3.scope"
    }
    assert inventory.group_of("/user.slice/user-1000.slice") is None


def test_a_user_makes_up_a_static_pod(node: Node) -> None:
    home = "user.slice/user-1000.slice/user@1000.service"
    for folder in ("user.slice", "user.slice/user-1000.slice", home):
        node.cgroup(folder)
    fake = f"{home}/kubepods-pod{STATIC}.slice/cri-containerd-{IDS['etcd']}.scope"
    node.cgroup(f"{home}/kubepods-pod{STATIC}.slice")
    node.cgroup(fake, 0)
    node.cgroup(f"{home}/kubelet.service", 0)
    found = rows(node.inventory())
    assert found["/" + fake]["role"] == ""
    assert found["/" + fake]["pod"] == ""
    assert found["/" + fake]["class_rank"] == 1
    assert found[f"/{home}/kubelet.service"]["role"] == ""


def test_a_user_makes_up_a_request(node: Node) -> None:
    """No kubelet was asked for anything there, and what is protected the user wrote too."""
    home = "user.slice/user-1000.slice/user@1000.service"
    pods = [f"{home}/kubepods-{qos}-pod{STATIC}.slice" for qos in ("burstable", "besteffort")]
    pods.append(f"{home}/kubepods-pod{STATIC}.slice")
    for folder in ("user.slice", "user.slice/user-1000.slice", home, *pods):
        node.cgroup(folder)
    fakes = [f"{pod}/cri-containerd-{IDS['etcd']}.scope" for pod in pods]
    for fake in fakes:
        node.cgroup(fake, 500, limit=str(GIB))
    found = rows(node.inventory())
    assert [found["/" + fake]["request"] for fake in fakes] == [None, None, None]
    node.write(f"sys/fs/cgroup/{fakes[0]}/memory.low", f"{GIB}\n")
    assert rows(node.inventory())["/" + fakes[0]]["request"] is None


@pytest.mark.parametrize(
    ("low", "request_"), [(f"{GIB}\n", GIB), ("max\n", 2 * GIB), ("0\n", None)]
)
def test_what_an_administrator_protects_is_a_request(
    node: Node, low: str, request_: int | None
) -> None:
    node.cgroup("batch.slice")
    node.cgroup("batch.slice/db.service", 0, limit=str(2 * GIB))
    node.write("sys/fs/cgroup/batch.slice/db.service/memory.low", low)
    assert rows(node.inventory())["/batch.slice/db.service"]["request"] == request_


def test_hostile_names_of_cgroups_are_cut_and_told(node: Node) -> None:
    evil = "system.slice/a\n\x1b[2Jkubelet.service"
    node.cgroup(evil, 0)
    found = rows(node.inventory())
    assert found["/" + evil]["role"] == ""
    assert json.loads(json.dumps(found["/" + evil]))["cgroup"] == "/" + evil


def test_250_pods_cost_little(node: Node) -> None:
    for number in range(250):
        uid = f"{number:08x}-0b1d-4c61-9f4e-2d8a1c6b7e50"
        pod = f"{PODS}/kubepods-burstable-pod{uid.replace('-', '_')}.slice"
        node.cgroup(pod)
        node.cgroup(f"{pod}/cri-containerd-{number + 100:064x}.scope", 900)
    inventory = node.inventory()
    assert len(rows(inventory)) == 250
    began = time.thread_time()
    inventory.refresh()
    assert time.thread_time() - began < 1.0
