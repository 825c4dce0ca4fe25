"""Which of a node's files are asked, and what is made of all their answers together."""

import json

from tests.case_host import CaseHost

from seawall.host.host import READ_LIMIT_BYTES, Unread
from seawall.host.recording import Recording, Round
from seawall.readings import container_files
from seawall.readings.container_files import ContainerFiles

APP, PAUSE, WEB, POD_C, LONE = (digit * 64 for digit in "abcde")
UID = "1858680e-b044-4fd5-9dd4-f137e30e2180"
TASK = "/run/containerd/io.containerd.runtime.v2.task"
CRI = "io.kubernetes.cri."


def config(**annotations: str) -> bytes:
    return json.dumps({"annotations": annotations}).encode()


def read(files: dict[str, bytes | Unread]) -> tuple[ContainerFiles, Round]:
    host = Recording(CaseHost(Round(files=files)))
    found = container_files.read(host)
    assert isinstance(found, ContainerFiles)
    return found, host.rounds[0]


def test_kubernetes_on_containerd() -> None:
    sandbox = {
        CRI + "container-type": "sandbox", CRI + "sandbox-name": "web-0",
        CRI + "sandbox-namespace": "shop", CRI + "sandbox-uid": UID,
    }  # fmt: skip
    found, asked = read({
        f"/var/log/containers/web-0_shop_app-{APP}.log": b"",
        f"/var/log/pods/kube-system_etcd-n1_{'7' * 32}/etcd/0.log": b"",
        f"{TASK}/k8s.io/{APP}/config.json": b"never asked: its log's name told all",
        f"{TASK}/k8s.io/{PAUSE}/config.json": config(**sandbox),
    })  # fmt: skip
    app, pause = found.by_id[APP], found.by_id[PAUSE]
    assert (app.namespace, app.pod, app.container) == ("shop", "web-0", "app")
    assert app.runtime == "containerd"
    assert pause.is_sandbox
    assert pause.pod_uid == UID
    assert found.pods == {"7" * 32: ("kube-system", "etcd-n1"), UID: ("shop", "web-0")}
    assert found.unread == ()
    assert f"{TASK}/k8s.io/{APP}/config.json" not in asked.files


def test_docker_alone_reads_running_ones_only() -> None:
    stopped = "/var/lib/docker/containers/" + "f" * 64
    found, asked = read({
        f"{TASK}/moby/{WEB}/config.json": b"{}",
        f"/var/lib/docker/containers/{WEB}/config.v2.json": b'{"Name": "/web"}',
        f"{stopped}/config.v2.json": b'{"Name": "/old"}',
    })  # fmt: skip
    assert found.by_id[WEB].runtime == "docker"
    assert found.by_id[WEB].name == "web"
    assert set(found.by_id) == {WEB}
    assert not any(path.startswith(stopped) for path in asked.files)


def test_old_docker_is_known_by_its_runc_state() -> None:
    found, _ = read({
        f"/run/docker/runtime-runc/moby/{WEB}/state.json": b"{}",
        f"/var/lib/docker/containers/{WEB}/config.v2.json": b'{"Name": "/web"}',
    })  # fmt: skip
    assert (found.by_id[WEB].runtime, found.by_id[WEB].name) == ("docker", "web")


def test_podman_and_crio_lists() -> None:
    run, lib = container_files.STORAGE_RUN, container_files.STORAGE_LIB
    rows = [
        {"id": WEB, "names": ["web"]},
        {"id": POD_C, "names": [f"k8s_app_web-0_shop_{UID}_0"]},
        {"id": "f" * 64, "names": ["stopped"]},
    ]
    manager = {"io.container.manager": "libpod"}
    found, asked = read({
        f"{run}/{WEB}/userdata/shm": b"",
        f"{run}/{POD_C}/userdata/shm": b"",
        f"{run}/{LONE}/userdata/shm": b"",
        f"{lib}/containers.json": json.dumps(rows).encode(),
        f"{lib}/{LONE}/userdata/config.json": config(**manager),
    })  # fmt: skip
    assert (found.by_id[WEB].runtime, found.by_id[WEB].name) == ("podman", "web")
    assert found.by_id[POD_C].runtime == "cri-o"
    assert found.pods[UID] == ("shop", "web-0")
    assert found.by_id[LONE].runtime == "podman"
    assert "f" * 64 not in found.by_id
    assert f"{run}/{WEB}/userdata/config.json" not in asked.files


def test_runc_alone_tells_its_cgroup() -> None:
    state = b'{"cgroup_paths": {"memory": "/sys/fs/cgroup/memory/x/w1"}}'
    found, _ = read({"/run/runc/w1/state.json": state})
    assert found.by_id["w1"].runtime == "runc"
    assert found.by_id["w1"].cgroup_folder == "/sys/fs/cgroup/memory/x/w1"


def test_what_was_refused_or_malformed_is_told() -> None:
    refused = Unread("/var/log/pods", "refused", "Permission denied")
    host = CaseHost(Round(
        files={f"{TASK}/default/{WEB}/config.json": b"{not json"},
        names={"/var/log/pods": refused},
    ))  # fmt: skip
    found = container_files.read(host)
    assert isinstance(found, ContainerFiles)
    assert found.by_id[WEB].runtime == "containerd"
    assert {(u.path, u.why) for u in found.unread} == {
        ("/var/log/pods", "refused"),
        (f"{TASK}/default/{WEB}/config.json", "malformed"),
    }


def test_an_empty_node_is_not_unread() -> None:
    found, asked = read({})
    assert found == ContainerFiles({}, {}, ())
    assert len(asked.names) + len(asked.files) < 20, "one question for each place"


def test_first_told_stays_and_lies_do_not_spread() -> None:
    """A config may claim anything; the kubelet's own links come first."""
    lie = {
        CRI + "sandbox-name": "victim-0", CRI + "sandbox-namespace": "bank",
        CRI + "container-name": "db", CRI + "sandbox-uid": "another",
    }  # fmt: skip
    found, _ = read({
        f"/var/log/containers/web-0_shop_app-{APP}.log": b"",
        f"/var/log/pods/shop_web-0_{UID}/app/0.log": b"",
        f"{TASK}/k8s.io/{APP}/config.json": config(**lie),
        f"{TASK}/k8s.io/{PAUSE}/config.json": config(**lie | {CRI + "sandbox-uid": UID}),
        f"{TASK}/k8s.io/.hidden/config.json": config(**lie),
        f"{TASK}/k8s.io/new\nline/config.json": config(**lie),
    })  # fmt: skip
    assert found.by_id[APP].pod == "web-0"
    assert found.pods[UID] == ("shop", "web-0")
    assert set(found.by_id) == {APP, PAUSE}


class Endless(CaseHost):
    """Answers every folder with more ids than a node has."""

    def __init__(self) -> None:
        super().__init__(Round())
        self.reads = 0

    def names(self, path: str) -> tuple[str, ...] | Unread:
        if path.startswith(TASK + "/"):
            return tuple(f"{n:064x}/" for n in range(20_000))
        return ("default/",) if path == TASK else Unread(path, "absent")

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        self.reads += 1
        assert limit_bytes <= container_files.CONFIG_LIMIT_BYTES
        return b"{}"


def test_a_folder_without_end_costs_a_bounded_time() -> None:
    host = Endless()
    found = container_files.read(host)
    assert isinstance(found, ContainerFiles)
    assert host.reads == container_files.CONFIGS_MOST
    assert [u.why for u in found.unread] == ["too_big"]
