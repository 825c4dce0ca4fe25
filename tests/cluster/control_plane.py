"""etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok on loopback, for one test.

All of it lies in one temporary folder: data, logs, keys, tokens.  The parts are killed with the
process that started them, whatever that one dies of.
"""

import contextlib
import http.client
import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.api_client import ApiClient, ApiError

from seawall.proc.parent_death import die_with_parent

HERE = Path(__file__).parent
USERS = {
    "admin": "system:masters",
    "kubelets": "system:masters",
    "kwok": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}
"""User and group, a token for each; the core's own parts have the rights of upstream."""
DATA_GIB = {
    "etcd": 2, "kube-apiserver": 6, "kube-controller-manager": 3, "kube-scheduler": 2, "kwok": 2,
}  # fmt: skip
"""Bound of each part's private memory (RLIMIT_DATA): a leak ends the part, not the machine."""
NAMES = ("IP:127.0.0.1", "IP:10.96.0.1", "IP:10.0.2.2", "DNS:localhost")
"""Of the API server: for this host, for pods, and for nodes on QEMU's user network."""
TASKS = 500
READY_SECONDS = 120
OLD_SECONDS = 600
"""A cgroup without tasks that is younger may be of a plane that just starts."""


@dataclass(frozen=True, slots=True)
class Times:
    """Of the core, in seconds; what it has by itself stands behind each."""

    grace: float = 8
    """From a node's last sign to Ready=Unknown: 50."""
    check: float = 0.5
    """Between two looks at all nodes: 5."""
    toleration: int = 2
    """From the taint to the deletion of a pod, set when the pod is made: 300."""
    lease: int = 4
    """Between a kubelet's two signs, times four: 40."""
    evictions_per_second: float = 10
    """Nodes of one zone that are tainted in a second: 0.1."""


TRUE_TIMES = Times(grace=50, check=5, toleration=300, lease=40, evictions_per_second=0.1)


class ControlPlane:
    """``with ControlPlane(program) as plane``: ready when it is entered, gone when it is left."""

    def __init__(self, program: Path, times: Times | None = None, *, kwok: Path) -> None:
        """``kwok``: the program that has that part; ``program`` unless it is of an old version."""
        self.program, self.kwok = program, kwok
        self.times = times or Times()
        self.start_seconds = 0.0
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self.tokens = {user: secrets.token_hex(16) for user in USERS}
        self.port, self.etcd_port, self.peer_port = free_ports(3)
        self.folder = Path()
        self.stack = contextlib.ExitStack()

    def __enter__(self) -> "ControlPlane":  # noqa: PYI034 - Self is of 3.11
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            self.folder = Path(tempfile.mkdtemp(prefix="seawall-plane-"))
            stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self.cgroups = stack.enter_context(task_bound(self.folder.name))
            stack.callback(self.stop)
            self.write_keys()
            self.start_parts()
            self.stack = stack.pop_all()
        self.start_seconds = time.monotonic() - began
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def client(self, user: str = "admin") -> ApiClient:
        return ApiClient(self.port, str(self.folder / "tls.crt"), self.tokens[user])

    @property
    def audit_path(self) -> Path:
        return self.folder / "audit.log"

    def write_keys(self) -> None:
        """A certificate that is its own authority, a key for tokens of service accounts, tokens."""
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        for name in ("tls", "accounts"):
            subprocess.run(
                ["openssl", "req", "-x509", *key, "-subj", f"/CN={name}", "-days", "7",
                 "-addext", f"subjectAltName={','.join(NAMES)}",
                 "-keyout", f"{name}.key", "-out", f"{name}.crt"],
                cwd=self.folder, check=True, capture_output=True,
            )  # fmt: skip
        rows = [f'{self.tokens[user]},{user},{user},"{group}"' for user, group in USERS.items()]
        (self.folder / "tokens.csv").write_text("\n".join(rows) + "\n")
        for user in USERS:
            self.kubeconfig(user).write_text(json.dumps(self.kubeconfig_of(self.tokens[user])))

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user.removeprefix('system:')}.kubeconfig"

    def kubeconfig_of(self, token: str) -> dict[str, object]:
        """JSON is YAML, so that all who read a kubeconfig take it."""
        cluster = {"server": f"https://127.0.0.1:{self.port}",
                   "certificate-authority": str(self.folder / "tls.crt")}  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Config", "current-context": "plane",
            "clusters": [{"name": "plane", "cluster": cluster}],
            "users": [{"name": "plane", "user": {"token": token}}],
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": "plane"}}],
        }  # fmt: skip

    def start_parts(self) -> None:
        self.start_etcd()
        self.start_apiserver()
        with self.client() as client:
            self.wait(lambda: self.is_ready(client), "kube-apiserver")
            self.start_the_rest(client)

    def start_the_rest(self, client: ApiClient) -> None:
        self.start_controllers()
        self.start("kube-scheduler", f"--kubeconfig={self.kubeconfig('system:kube-scheduler')}",
                   "--leader-elect=false", "--secure-port=0")  # fmt: skip
        self.start_kubelets()
        # Without the account no pod is taken; the controllers make it as soon as they run.
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait(lambda: exists(client, path), "kube-controller-manager")

    def start_kubelets(self) -> None:
        """One program that plays all of them."""
        self.start("kwok", f"--kubeconfig={self.kubeconfig('kwok')}", "--manage-all-nodes",
                   f"--config={HERE / 'kwok_stages.yaml'}", "--node-lease-duration-seconds=0",
                   "--cidr=10.0.0.0/8", "--node-ip=10.0.0.1")  # fmt: skip

    def start_etcd(self) -> None:
        """With certificates in both directions: who is on this machine is not in the cluster."""
        client, peer = (f"https://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        keys = ["cert-file=tls.crt", "key-file=tls.key", "trusted-ca-file=tls.crt"]
        self.start(
            "etcd", "--data-dir=etcd", f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            *(f"--{who}{key}" for who in ("", "peer-") for key in (*keys, "client-cert-auth")),
            "--unsafe-no-fsync", "--log-level=warn",
        )  # fmt: skip

    def start_apiserver(self) -> None:
        self.start(
            "kube-apiserver", f"--etcd-servers=https://127.0.0.1:{self.etcd_port}",
            "--etcd-cafile=tls.crt", "--etcd-certfile=tls.crt", "--etcd-keyfile=tls.key",
            "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            "--tls-cert-file=tls.crt", "--tls-private-key-file=tls.key", "--cert-dir=certs",
            "--token-auth-file=tokens.csv", "--authorization-mode=Node,RBAC",
            "--anonymous-auth=false", "--service-account-issuer=https://plane.test",
            "--service-account-key-file=accounts.crt",
            "--service-account-signing-key-file=accounts.key",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--default-not-ready-toleration-seconds={self.times.toleration}",
            f"--default-unreachable-toleration-seconds={self.times.toleration}",
            f"--audit-policy-file={HERE / 'audit_policy.yaml'}", "--audit-log-path=audit.log",
        )  # fmt: skip

    def kill_apiserver(self) -> None:
        """At once, and gone when this returns; ``start_apiserver`` brings it back."""
        part = self.parts["kube-apiserver"]
        part.kill()
        part.wait()

    @contextlib.contextmanager
    def without_apiserver(self, client: ApiClient) -> Iterator[None]:
        """Killed, and ready again at the end."""
        self.kill_apiserver()
        yield
        self.start_apiserver()
        self.wait(lambda: self.is_ready(client), "kube-apiserver")

    def start_controllers(self) -> None:
        self.start(
            "kube-controller-manager",
            f"--kubeconfig={self.kubeconfig('system:kube-controller-manager')}",
            "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials",
            "--service-account-private-key-file=accounts.key", "--root-ca-file=tls.crt",
            "--controllers=*,-node-ipam-controller",
            f"--node-monitor-grace-period={self.times.grace}s",
            f"--node-monitor-period={self.times.check}s",
            f"--node-eviction-rate={self.times.evictions_per_second}",
        )  # fmt: skip

    def start(self, part: str, *flags: str) -> None:
        bound, parent = DATA_GIB[part] << 30, os.getpid()

        def bind() -> None:
            die_with_parent(parent)
            resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
            for folder in self.cgroups:
                (folder / "cgroup.procs").write_text("0")

        program = self.kwok if part == "kwok" else self.program
        with open(self.folder / f"{part}.log", "wb") as log:
            self.parts[part] = subprocess.Popen(
                [program, part, *flags], cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, preexec_fn=bind,  # noqa: PLW1509 - one thread
                start_new_session=True, env={"PATH": os.environ["PATH"], "HOME": str(self.folder),
                                             "GOMEMLIMIT": f"{bound * 3 // 4}"},
            )  # fmt: skip

    def stop(self) -> None:
        """The last first: nobody is left who asks one that is gone.  Nothing is worth saving."""
        for child in reversed(self.parts.values()):
            child.kill()
            child.wait()

    def is_ready(self, client: ApiClient) -> bool:
        try:
            return client.get("/readyz") == {"message": "ok"}
        except (OSError, http.client.HTTPException, ApiError):
            return False

    def wait(self, done: Callable[[], bool], part: str) -> None:
        """Until this part has done its first work; one that ended says so by its last words."""
        deadline = time.monotonic() + READY_SECONDS
        while not done():
            ended = [name for name, child in self.parts.items() if child.poll() is not None]
            if ended or time.monotonic() > deadline:
                name = (ended or [part])[0]
                words = (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"{name} {'ended' if ended else 'is not ready'}:\n{words}")
            time.sleep(0.1)

    def resident_bytes(self) -> dict[str, int]:
        """Of each part, as of now."""
        page = resource.getpagesize()
        return {
            part: int(Path(f"/proc/{child.pid}/statm").read_text().split()[1]) * page
            for part, child in self.parts.items()
        }


def exists(client: ApiClient, path: str) -> bool:
    try:
        client.get(path)
    except ApiError as problem:
        if problem.status != 404:
            raise
        return False
    return True


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@contextlib.contextmanager
def task_bound(name: str) -> Iterator[list[Path]]:
    """A cgroup with ``pids.max``, where this user may make one; else none."""
    found = []
    for tree in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):
        folder = tree / name
        for left in tree.glob("seawall-plane-*"):  # by one that was killed; a busy one stays
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_ctime > OLD_SECONDS:
                    left.rmdir()
        with contextlib.suppress(OSError):
            folder.mkdir()
            found = [folder]
            (folder / "pids.max").write_text(str(TASKS))
            break
    try:
        yield found
    finally:
        for folder in found:
            wait_until_empty(folder)
            folder.rmdir()


def wait_until_empty(folder: Path) -> None:
    """A task leaves its cgroup a moment after it was reaped."""
    for _ in range(100):
        if not (folder / "cgroup.procs").read_text():
            return
        time.sleep(0.02)
