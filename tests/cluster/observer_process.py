"""The observer as it runs in a pod: a process of its own, an account of its own, nothing more."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.api_client import ApiClient, ApiError, Object
from tests.cluster.control_plane import ControlPlane
from tests.cluster.custom_resources import install
from tests.cluster.rendered_manifests import documents

from seawall.cluster.objects.api_group import CUSTOM_KINDS, GROUP, VERSION, CustomKind, path_of

REPOSITORY = Path(__file__).parents[2]
NAMESPACE = "seawall"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
INSTALLED = {
    "ClusterRole": f"{RBAC}/clusterroles",
    "Role": f"{RBAC}/namespaces/{NAMESPACE}/roles",
    "ValidatingAdmissionPolicy":
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding":
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
}  # fmt: skip
"""What the plain manifests hold of an observer's rights and of what fences it in."""
ACCOUNT = "seawall-observer"


def ready_for_observers(client: ApiClient) -> None:
    """Kinds, namespace, rights; whatever an earlier test left of our objects goes."""
    install(client)
    for kind in CUSTOM_KINDS:
        for one in client.items(path_of(kind)):
            client.delete(path_of(kind, one["metadata"]["name"]))
    create(client, "/api/v1/namespaces",
           {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})  # fmt: skip
    for document in documents():
        name = document["metadata"]["name"]
        if document["kind"] in INSTALLED and (name == ACCOUNT or "quarantines" in name):
            create(client, INSTALLED[document["kind"]], document)


def watched_for_a_month(client: ApiClient) -> None:
    """A policy whose cluster has been watched for a month without a death."""
    kind = CUSTOM_KINDS[2]
    create(client, path_of(kind), {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind.kind,
                                   "metadata": {"name": "default"}, "spec": {}})  # fmt: skip
    month_ago = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - 30 * 86400))
    client.patch(path_of(kind, "default", status=True), {"status": {"watchedSince": month_ago}})


def create(client: ApiClient, path: str, body: Object) -> None:
    try:
        client.create(path, body)
    except ApiError as problem:
        if problem.status != 409:
            raise


class ObserverProcess:
    """``with ObserverProcess(plane, folder) as observer``."""

    role = ACCOUNT

    def __init__(self, plane: ControlPlane, folder: Path, account: str = ACCOUNT,
                 environment: Mapping[str, str] | None = None) -> None:  # fmt: skip
        self.plane, self.folder, self.account = plane, folder, account
        self.environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "src", "POD_NAME": account,
                            **(environment or {})}  # fmt: skip
        self.log_path = folder / f"{account}-{uuid.uuid4().hex[:6]}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def user(self) -> str:
        return f"system:serviceaccount:{NAMESPACE}:{self.account}"

    def token(self) -> str:
        with self.plane.client() as client:
            accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
            create(client, accounts, {"apiVersion": "v1", "kind": "ServiceAccount",
                                      "metadata": {"name": self.account}})  # fmt: skip
            subject = {"kind": "ServiceAccount", "name": self.account, "namespace": NAMESPACE}
            for kind, place in (("ClusterRole", RBAC), ("Role", f"{RBAC}/namespaces/{NAMESPACE}")):
                role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": self.role}
                create(client, f"{place}/{kind.lower()}bindings", {
                    "apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding",
                    "metadata": {"name": f"test-{self.account}"}, "roleRef": role,
                    "subjects": [subject],
                })  # fmt: skip
            answer = client.create(
                f"{accounts}/{self.account}/token",
                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                 "spec": {"expirationSeconds": 3600}},
            )  # fmt: skip
        return str(answer["status"]["token"])

    def renew_token(self) -> Path:
        """As the kubelet does it, long before its hour is over."""
        file = self.folder / f"{self.account}.token"
        file.write_text(self.token())
        return file

    def command(self, *more: str) -> list[str]:
        file = self.renew_token()
        return [
            sys.executable, "-m", "seawall", "cluster", "controller",
            "--server", f"https://127.0.0.1:{self.plane.port}",
            "--ca-file", str(self.plane.folder / "tls.crt"), "--token-file", str(file), *more,
        ]  # fmt: skip

    def __enter__(self) -> "ObserverProcess":  # noqa: PYI034 - Self is of 3.11
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                self.command("--metrics-address", "127.0.0.1:0"), stdout=log, stderr=log,
                env=self.environment, cwd=REPOSITORY,
            )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
            self.process.send_signal(signal.SIGCONT)  # of one that a test has stopped
        try:
            self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def leads(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        return " leads: " in self.log()

    def signal(self, number: int) -> None:
        """``signal.SIGSTOP`` and the like."""
        assert self.process is not None
        self.process.send_signal(number)

    @property
    def metrics_port(self) -> int:
        """On loopback, as its log has it."""
        return int(self.log().partition("metrics on 127.0.0.1:")[2].split()[0])

    def metrics(self) -> dict[str, float]:
        """Of each series its value."""
        address = f"http://127.0.0.1:{self.metrics_port}/metrics"
        with urllib.request.urlopen(address, timeout=10) as answer:
            text = answer.read().decode()
        rows = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in rows}

    def resident_bytes(self) -> int:
        assert self.process is not None
        pages = Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]
        return int(pages) * 4096


def objects(client: ApiClient, kind: CustomKind) -> list[Object]:
    return client.items(path_of(kind))


def shown(value: object) -> str:
    return json.dumps(value, indent=1)
