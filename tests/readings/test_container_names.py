"""What runtimes write down, as they write it; and what nobody ever should have."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seawall.problems import ParseProblem
from seawall.readings.container_names import (
    from_k8s_name,
    from_log_link,
    from_pod_logs,
    parse_config,
    parse_containers,
    parse_state,
)

ID = "3f404928fe6b9cc8da765bea3531567f94fda7af30f770cb06c1293622dee96d"
UID = "1858680e-b044-4fd5-9dd4-f137e30e2180"
STATIC = "8a1b3c5d7e9f0a2b4c6d8e0f1a2b3c4d"


def test_log_links() -> None:
    """kubelet: POD_NAMESPACE_CONTAINER-ID.log; a container's name may end in digits and -."""
    assert from_log_link(f"coredns-5d78c9869d-abcde_kube-system_core-dns-1-{ID}.log") == {
        "container_id": ID,
        "pod": "coredns-5d78c9869d-abcde",
        "namespace": "kube-system",
        "container": "core-dns-1",
    }
    pod = from_log_link(f"etcd-node1.example.com_kube-system_etcd-{ID}.log")
    assert pod is not None
    assert pod["pod"] == "etcd-node1.example.com"
    for name in (
        f"a_b_c-{ID[:-1]}.log",
        f"a_b_c_d-{ID}.log",
        f"a_B_c-{ID}.log",
        f"a_b_c-{ID}.log\n",
        f"x\n_b_c-{ID}.log",
        f"../a_b_c-{ID}.log",
        f"{'a' * 300}_b_c-{ID}.log",
        "",
    ):
        assert from_log_link(name) is None, name


def test_pod_logs() -> None:
    assert from_pod_logs(f"shop_web-7d9f_{UID}") == (UID, "shop", "web-7d9f")
    assert from_pod_logs(f"kube-system_etcd-n1.a_{STATIC}") == (STATIC, "kube-system", "etcd-n1.a")
    for name in ("shop_web", "shop_web_", "a_b_c_d", "shop_web_u/x", "shop_web_u\n"):
        assert from_pod_logs(name) is None, name


def test_k8s_names() -> None:
    assert from_k8s_name(f"/k8s_app_web-0_shop_{UID}_3") == {
        "pod": "web-0", "namespace": "shop", "pod_uid": UID, "container": "app",
    }  # fmt: skip
    assert from_k8s_name(f"k8s_POD_web-0_shop_{UID}_0")["is_sandbox"] is True
    assert from_k8s_name("/web") == {"name": "web"}
    assert from_k8s_name("we b\x1b[31m") == {}


def test_containerd_config() -> None:
    told = parse_config(json.dumps({
        "annotations": {
            "io.kubernetes.cri.container-name": "app",
            "io.kubernetes.cri.container-type": "container",
            "io.kubernetes.cri.sandbox-id": ID,
            "io.kubernetes.cri.sandbox-name": "web-0",
            "io.kubernetes.cri.sandbox-namespace": "shop",
            "io.kubernetes.cri.sandbox-uid": UID,
        },
        "linux": {"cgroupsPath": f"kubepods-pod{UID}.slice:cri-containerd:{ID}"},
    }).encode())  # fmt: skip
    assert told == {
        "container": "app", "sandbox_id": ID, "pod": "web-0", "namespace": "shop",
        "pod_uid": UID, "cgroups_path": f"kubepods-pod{UID}.slice:cri-containerd:{ID}",
    }  # fmt: skip


def test_crio_sandbox_config() -> None:
    told = parse_config(json.dumps({
        "annotations": {
            "io.container.manager": "cri-o",
            "io.kubernetes.container.name": "POD",
            "io.kubernetes.cri-o.ContainerType": "sandbox",
            "io.kubernetes.cri-o.KubeName": "web-0",
            "io.kubernetes.pod.namespace": "shop",
            "io.kubernetes.pod.uid": UID,
        },
    }).encode())  # fmt: skip
    assert told == {
        "pod": "web-0", "namespace": "shop", "pod_uid": UID, "is_sandbox": True,
        "runtime": "cri-o",
    }  # fmt: skip


def test_docker_config() -> None:
    assert parse_config(b'{"ID": "x", "Name": "/web", "Config": {"Labels": {}}}') == {"name": "web"}
    told = parse_config(json.dumps({
        "Name": f"/k8s_POD_web-0_shop_{UID}_0",
        "Config": {"Labels": {
            "io.kubernetes.container.name": "POD", "io.kubernetes.docker.type": "podsandbox",
            "io.kubernetes.pod.name": "web-0",
        }},
    }).encode())  # fmt: skip
    assert told["is_sandbox"] is True
    assert "container" not in told


def test_names_that_no_system_gives_are_dropped() -> None:
    told = parse_config(json.dumps({
        "Name": "/\x1b]0;owned\x07",
        "annotations": {
            "io.kubernetes.cri.sandbox-name": "web\nroot",
            "io.kubernetes.cri.sandbox-namespace": "../kube-system",
            "io.kubernetes.cri.container-name": ["app"],
            "io.kubernetes.cri.sandbox-uid": "\ud800",
            "io.container.manager": {"a": 1},
        },
        "linux": {"cgroupsPath": 7},
    }).encode())  # fmt: skip
    assert told == {}


def test_storage_list() -> None:
    rows = [
        {"id": ID, "names": ["web"], "layer": "x", "metadata": '{"image-name":"docker.io/nginx"}'},
        {"id": "b" * 64, "names": [f"k8s_app_web-0_shop_{UID}_0"]},
        {"id": "../x", "names": ["a"]}, {"id": "c" * 64}, {"id": "d" * 64, "names": [7]}, 3,
    ]  # fmt: skip
    found = parse_containers(json.dumps(rows).encode())
    assert found[ID] == {"name": "web"}
    assert found["b" * 64]["container"] == "app"
    assert set(found) == {ID, "b" * 64, "d" * 64}
    assert found["d" * 64] == {}


def test_runc_state() -> None:
    state = {"id": "w", "cgroup_paths": {"memory": "/sys/fs/cgroup/memory/w", "pids": "/p"}}
    assert parse_state(json.dumps(state).encode()) == {"cgroup_folder": "/sys/fs/cgroup/memory/w"}
    assert parse_state(b'{"cgroup_paths": {"": "/sys/fs/cgroup/w"}}') == {
        "cgroup_folder": "/sys/fs/cgroup/w"
    }
    assert parse_state(b'{"cgroup_paths": {"memory": 3}}') == {}
    assert parse_state(b'{"cgroup_paths": []}') == {}


@pytest.mark.parametrize("parse", [parse_config, parse_state, parse_containers])
@pytest.mark.parametrize(
    "data", [b"", b"7", b'"x"', b"{", b"[" * 100_000, b"\xff", b"9" * 5000, b"null"]
)
def test_what_is_no_document_is_a_parse_problem(parse: object, data: bytes) -> None:
    with pytest.raises(ParseProblem):
        parse(data)  # type: ignore[operator]


WORDS = st.sampled_from([
    "annotations", "linux", "cgroupsPath", "Config", "Labels", "Name", "id", "names",
    "cgroup_paths", "memory", "io.kubernetes.cri.sandbox-name", "io.container.manager",
    "io.kubernetes.cri.container-type", "sandbox", "web", "/web",
]) | st.text(max_size=8)  # fmt: skip
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=6),
    max_leaves=25,
)


@given(DOCUMENTS)
def test_only_parse_problems_escape(document: object) -> None:
    data = json.dumps(document).encode()
    for parse in (parse_config, parse_state, parse_containers):
        try:
            parse(data)
        except ParseProblem:
            continue


@given(st.text(max_size=80))
def test_any_name_is_survived(name: str) -> None:
    assert from_log_link(name) is None or name.endswith(".log")
    assert from_pod_logs(name) is None or name.count("_") == 2
    from_k8s_name(name)
