"""What the tests of the cluster stand on is what it says, and leaves nothing behind."""

import contextlib
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.cluster.api_client import ApiClient, ApiError
from tests.cluster.audit_log import AuditLog
from tests.cluster.control_plane import USERS, ControlPlane
from tests.cluster.kwok_nodes import Hardware, KwokNodes, condition
from tests.cluster.plane_build import version_wanted
from tests.cluster.waiting import wait_until
from tests.cluster.workloads import deploy, pod_spec, pods, running_nodes

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

REPOSITORY = Path(__file__).parents[2]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
HOLD = """
import signal, sys, time
from pathlib import Path
from tests.cluster.control_plane import ControlPlane
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
with ControlPlane(Path(sys.argv[1]), kwok=Path(sys.argv[2])) as plane:
    print(*(child.pid for child in plane.parts.values()), flush=True)
    time.sleep(600)
"""


def test_it_is_of_the_version_that_was_asked_for(plane: ControlPlane, client: ApiClient) -> None:
    print(f"ready in {plane.start_seconds:.1f} s, resident MiB:", {
        part: size >> 20 for part, size in plane.resident_bytes().items()})  # fmt: skip
    version = version_wanted()
    assert client.get("/version")["gitVersion"].startswith(f"v{version}.")
    served = {one["name"] for one in client.get(ADMISSION)["resources"]}
    assert "validatingadmissionpolicies" in served
    # Stable since 1.36: without it what is to be held has to be denied.
    assert ("mutatingadmissionpolicies" in served) == (version >= "1.36")


def test_nobody_without_a_token_is_let_in(plane: ControlPlane, client: ApiClient) -> None:
    stranger = plane.client()
    stranger.token = "not-a-token"
    with stranger, pytest.raises(ApiError) as refused:
        stranger.get("/api/v1/nodes")
    assert refused.value.status == 401
    with plane.client("system:kube-scheduler") as scheduler, pytest.raises(ApiError) as refused:
        scheduler.get("/api/v1/secrets")
    assert refused.value.status == 403
    assert len(set(plane.tokens.values())) == len(USERS)


def test_it_listens_on_loopback_alone_and_etcd_wants_a_certificate(plane: ControlPlane) -> None:
    heard = {
        one.laddr
        for child in plane.parts.values()
        for one in psutil.Process(child.pid).net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    }
    assert {address for address, _ in heard} == {"127.0.0.1"}
    assert {port for _, port in heard} == {plane.port, plane.etcd_port, plane.peer_port}
    trusting = ssl.create_default_context(cafile=str(plane.folder / "tls.crt"))
    with (
        contextlib.closing(socket.create_connection(("127.0.0.1", plane.etcd_port))) as plain,
        pytest.raises(ssl.SSLError, match="certificate required"),
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as stranger,
    ):
        stranger.recv(1)


def test_the_audit_log_names_who_wrote_what_with_its_bytes(
    client: ApiClient, nodes: KwokNodes, audit: AuditLog
) -> None:
    (name,) = nodes.add(1)
    mark = audit.mark()
    client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {"seen": "yes"}}})
    client.get(f"/api/v1/nodes/{name}")
    wait_until(lambda: "admin" in audit.writers(mark), 10, "the patch is in the audit log")
    own = [one for one in audit.since(mark) if one.user == "admin"]
    assert [(one.verb, one.resource, one.name, one.status) for one in own] == [
        ("patch", "nodes", name, 200)
    ]
    assert own[0].body == {"metadata": {"labels": {"seen": "yes"}}}


def test_a_node_that_comes_back_runs_new_pods_and_ends_the_old(
    client: ApiClient, nodes: KwokNodes, space: str
) -> None:
    """Its pods were deleted while nobody heard of it: they hang until it is back, as in life."""
    (name,) = nodes.add(1, Hardware(zone="zone-b", kernel="6.1.0-44-cloud-amd64"))
    path = f"/api/v1/nodes/{name}"
    boot = client.get(path)["status"]["nodeInfo"]["bootID"]
    deploy(client, space, "web", 2, pod_spec("registry.test/web:1"))
    wait_until(lambda: running_nodes(client, space, "web") == [name] * 2, 60, "web runs")
    nodes.die(name)
    wait_until(lambda: condition(client.get(path)) == "Unknown", 60, "the node is NotReady")
    # The only node of its zone, all of which is silent: the core takes that for its own fault and
    # deletes nothing (FullDisruption), so a second one stands beside it.
    assert all("deletionTimestamp" not in pod["metadata"] for pod in pods(client, space, "web"))
    nodes.add(1, Hardware(zone="zone-b"))
    wait_until(lambda: hanging(client, space) == 2, 60, "the pods are deleted")
    nodes.come_back(name)
    wait_until(lambda: condition(client.get(path)) == "True", 10, "the node is Ready")
    wait_until(lambda: hanging(client, space) == 0, 30, "the old pods are gone")
    assert client.get(path)["status"]["nodeInfo"]["bootID"] != boot


def hanging(client: ApiClient, space: str) -> int:
    return sum("deletionTimestamp" in pod["metadata"] for pod in pods(client, space, "web"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda one: one.name)
def test_whoever_started_it_dies_and_nothing_runs_on(
    program: Path, kwok: Path, tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, program, kwok], cwd=REPOSITORY, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "src:.", "TMPDIR": str(tmp_path)},
    ) as holder:  # fmt: skip
        try:
            assert holder.stdout is not None
            ids = [int(word) for word in holder.stdout.readline().split()]
            assert len(ids) == 5
            holder.send_signal(number)
            holder.wait(30)
        finally:
            holder.kill()
    wait_until(lambda: not any(alive(one) for one in ids), 10, "all five are gone")
    if number == signal.SIGINT:
        assert not list(tmp_path.iterdir())


def alive(number: int) -> bool:
    """A zombie, which init has not reaped yet, runs no more."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
