"""Nodes in QEMU that die of their memory while guard and agent run, seen from a real API server.

The guard only observes, so that the node really dies.  A ``Death`` says how; ``DyingNodes.run``
boots the node, lets it die and brings back what the node said and what the API server was told.
Three kinds, the third in two forms:

``thrash``     packet rings that no cgroup counts leave no room for the programs' text, which comes
               back from a slow disk page by page: the node answers nobody, and no OOM kill helps.
``oom-panic``  counted memory beyond RAM without swap, ``vm.panic_on_oom=1``: machines that are set
               to reboot rather than to limp, and those where nobody is left to be killed.
``crash``      the kernel panics at a random moment of a shortage (sysrq c): a driver's bug, a
               hung task, a watchdog.
``freeze``     QEMU stops the VM at such a moment: a host that is gone, a cut network, power.
"""

import contextlib
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cluster.agent_account import REPORTS, install, token_of
from tests.cluster.api_client import STRATEGIC, ApiClient, ApiError
from tests.cluster.audit_log import AuditLog, Request
from tests.cluster.control_plane import ControlPlane, Times
from tests.cluster.kwok_nodes import LEASES, Hardware, condition, lease, node, ready, remove
from tests.cluster.workloads import namespace
from tests.kernels import guard_node, vm, vm_monitor
from tests.kernels.guard_node import (
    GUARD,
    GUEST,
    HERE,
    MEMORY_MIB,
    Killer,
    job,
    killer_spec,
    packet_diag,
)
from tests.kernels.guard_scenarios import (
    AT_WORK,
    ENDLESS,
    MIXES,
    OWN,
    SERVICES,
    Load,
    Mix,
    Scenario,
    culprit,
    fill,
    programs,
)
from tests.kernels.power_cut_node import Node, empty_ext4

KINDS = ("thrash", "oom-panic", "crash", "freeze")
ENDS = ("panic", "frozen", "silent")
"""Ways of ``Seen.ended`` that are a death."""
ORDER = ("thrash", "oom-panic", "crash", "thrash", "oom-panic", "freeze")
"""In turn: a third of all each, and the sudden ones one half each."""
TIMES = Times(grace=40, check=1, toleration=300, lease=40)
"""A node is NotReady 40 s after its last sign, as most clusters in use have it (50 since 1.32)."""
SPACE = "last-gasp"
HOST = "10.0.2.2"
"""QEMU's user network: this host's loopback."""
READY_SECONDS = 300.0
DIES_SECONDS = 180.0
"""Within so long, or it is no death."""
AFTER_SECONDS = 30.0
"""So long a silent node is listened to after it is NotReady."""
REBORN_SECONDS = 180.0
NETWORK = (
    "net/core/failover.ko", "drivers/net/net_failover.ko", "drivers/net/virtio_net.ko",
)  # fmt: skip
BOX = "/mnt/box/blackbox/box"
TOML = f"""mode = "observe"
blackbox = "{BOX}"
blackbox_size = "8MiB"
"""
_PREPARE = """
insmod failover.ko && insmod net_failover.ko && insmod virtio_net.ko
ip addr add 10.0.2.15/24 dev eth0 && ip link set eth0 up && ip route add default via 10.0.2.2
mkdir -p /mnt/box /var/log/pods
mount -t ext4 /dev/vdd /mnt/box
mkdir -p -m 700 /mnt/box/blackbox
cp ca.crt token /run/
cp ca.crt kubelet-token kubelet_lease.py /opt/kubelet/
"""
_LOADS_MODULES = "insmod af_packet_diag.ko\n"
_REBORN = """
echo "reborn"
exec /bin/seawall AGENT
"""


def add_to_image(root: Path) -> None:
    """With an interpreter of its own for the kubelet's stand-in."""
    guard_node.add_to_image(root)
    vm.install_python(root / "opt/kubelet")


@dataclass(frozen=True)
class Death:
    """What is to happen to one node."""

    kind: str
    seed: int
    loads: tuple[Load, ...]
    mix: Mix
    rate_mib: int
    room_mib: int = 0
    """So much the hog leaves; 0: it goes on."""
    disk_iops: int | None = None
    after_seconds: float | None = None
    """From the moment that 5 % of memory can be had to the sudden end."""

    @property
    def id(self) -> str:
        return f"{self.kind} {self.seed}"

    @property
    def node(self) -> str:
        return f"{self.kind}-{self.seed}"


def drawn(kind: str, seed: int) -> Death:
    """One of a kind, with pace, room, disk and moment by chance."""
    chance = random.Random(f"{kind} {seed}")
    mix = chance.choice(MIXES)
    if kind == "thrash":
        if mix == "hog best effort":
            mix = "hog guaranteed"  # the kernel would end it first, and the node would live
        rate, room = chance.choice((40, 100, 160)), chance.choice((4, 8, 12))
        loads = (*SERVICES, *AT_WORK, *programs(4, 10), fill("rings", room, rate))
        return Death(kind, seed, loads, mix, rate, room, chance.choice((300, 500, 800)))
    rate = chance.choice((20, 40, 80, 160))
    if kind == "oom-panic":
        hog = culprit("hog", OWN, "anonymous", ENDLESS, str(rate), "GO", limit_mib=1400)
        return Death(kind, seed, (*SERVICES, *AT_WORK, hog), mix, rate)
    loads = (*SERVICES, *AT_WORK, fill("rings", 48, rate))
    return Death(kind, seed, loads, mix, rate, 48, after_seconds=round(chance.uniform(0, 12), 1))


@dataclass
class Seen:
    """What came of a death; times are this host's Unix seconds."""

    death: Death
    lines: list[tuple[float, str]]
    ended: str
    """``panic``, ``frozen``, ``silent``: how the cluster and this host saw it end; ``alive``: it
    did not; ``not begun``: it was never ready."""
    died_at: float
    not_ready_at: float | None
    requests: list[Request]
    post_mortem: dict[str, Any] | None = None


class DyingNodes:
    """Of one control plane and one image."""

    toml = TOML
    kubelet_words: tuple[str, ...] = ()

    def __init__(self, plane: ControlPlane, image: vm.Image) -> None:
        self.plane, self.image = plane, image
        self.audit = AuditLog(plane.audit_path)
        with plane.client() as client:
            namespace(client, SPACE)
            install(client, SPACE)

    def run(self, death: Death, *, is_reborn: bool) -> Seen:
        """``is_reborn``: the machine boots once more, and its agent tells how it died."""
        mark = self.audit.mark()
        with (
            tempfile.TemporaryDirectory(prefix="seawall-dying-") as name,
            self.plane.client() as client,
            registered(client, death.node),
        ):
            folder = Path(name)
            (folder / "box.ext4").write_bytes(empty_ext4(folder))
            token = token_of(client, SPACE, death.node)
            seen = self.die(death, client, folder, token)
            time.sleep(1)
            seen.requests = [one for one in self.audit.since(mark) if is_of(one, death.node)]
            if is_reborn and seen.ended in ENDS:
                seen.post_mortem = self.post_mortem(death, client, folder, token)
        return seen

    def die(self, death: Death, client: ApiClient, folder: Path, token: str) -> Seen:
        shift = time.time() - time.monotonic()
        with self.booted(death, folder, self.job_of(death), self.files_of(death, token)) as machine:
            try:
                machine.wait_for("lease renewed: 200", READY_SECONDS)
                # As a kubelet does it: while it booted the node was taken for a silent one.
                client.patch(f"/api/v1/nodes/{death.node}/status",
                             {"status": {"conditions": [ready(0.0)]}}, STRATEGIC)  # fmt: skip
                machine.wait_for("=== go", READY_SECONDS)
                ended, at, not_ready = follow(machine, death, client, folder / "monitor")
            except TimeoutError:
                ended, at, not_ready = "not begun", time.monotonic(), None
            machine.kill()
            lines = [(stamp + shift, line) for stamp, line in machine.lines]
        return Seen(death, lines, ended, at + shift, not_ready and not_ready + shift, [])

    def booted(self, death: Death, folder: Path, script: str, files: dict[str, bytes]) -> Node:
        (folder / "console").unlink(missing_ok=True)
        (folder / "monitor").unlink(missing_ok=True)
        return Node(
            self.image, folder, script, (), files=files, memory_mib=MEMORY_MIB,
            root_iops=death.disk_iops, options=(
                "-drive", f"file={folder / 'box.ext4'},if=virtio,format=raw",
                "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
                "-qmp", f"unix:{folder / 'monitor'},server=on,wait=off",
            ),
        )  # fmt: skip

    def job_of(self, death: Death) -> str:
        panics = "echo 1 > /proc/sys/vm/panic_on_oom\n" if death.kind == "oom-panic" else ""
        return job(_PREPARE + _LOADS_MODULES + panics, "dying_node.py")

    def files_of(self, death: Death, token: str) -> dict[str, bytes]:
        files = {path.name: path.read_bytes() for path in GUEST.glob("guard_*.py")}
        for name in ("dying_node.py", "kubelet_lease.py"):
            files[name] = (GUEST / name).read_bytes()
        files["kernel_loads.py"] = (HERE.parent / "end_to_end/kernel_loads.py").read_bytes()
        files["guard.toml"] = self.toml.encode()
        files["af_packet_diag.ko"] = packet_diag(self.image)
        port = str(self.plane.port)
        spec = {
            "node": death.node, "salt": death.node, "after_seconds": death.after_seconds,
            "how": death.kind, "guard": killer_spec(GUARD),
            "agent": killer_spec(self.agent(death.node)),
            "loads": Scenario(death.kind, death.loads, mix=death.mix).spec()["loads"],
            "kubelet": [HOST, port, "/ca.crt", "/kubelet-token", death.node,
                        *self.kubelet_words],
        }  # fmt: skip
        files["spec.json"] = json.dumps(spec).encode()
        return {**files, **self.network_files(token)}

    def network_files(self, token: str) -> dict[str, bytes]:
        home = Path("/lib/modules") / Path(self.image.kernel).name.removeprefix("vmlinuz-")
        return {
            **{Path(name).name: (home / "kernel" / name).read_bytes() for name in NETWORK},
            "ca.crt": (self.plane.folder / "tls.crt").read_bytes(), "token": token.encode(),
            "kubelet-token": self.plane.tokens["kubelets"].encode(),
        }  # fmt: skip

    def agent(self, node: str, blackbox: str = "") -> Killer:
        """As ``packaging/seawall-agent.service`` starts it."""
        words = ("--node-name", node, "--server", f"https://{HOST}:{self.plane.port}",
                 "--ca", "/run/ca.crt", "--token-file", "/run/token",
                 "--blackbox", blackbox)  # fmt: skip
        return Killer("agent", ("/bin/seawall", "agent", *words), adj=-999, nice=-20,
                      cpu_weight=10_000, group="/seawall-agent.service")  # fmt: skip

    def post_mortem(
        self, death: Death, client: ApiClient, folder: Path, token: str
    ) -> dict[str, Any] | None:
        """``lastDeath`` of the node's report after the next boot; None: it never came."""
        words = self.agent(death.node, BOX).command[1:]
        script = _PREPARE + _REBORN.replace("AGENT", " ".join(words))
        with self.booted(replace(death, disk_iops=None), folder, script,
                         self.network_files(token)) as machine:  # fmt: skip
            until = time.monotonic() + REBORN_SECONDS
            while time.monotonic() < until and not machine.has_ended:
                with contextlib.suppress(ApiError):
                    found = client.get(f"{REPORTS}/{death.node}")["report"].get("lastDeath")
                    if found:
                        return dict(found)
                time.sleep(0.5)
        return None


@contextlib.contextmanager
def registered(client: ApiClient, name: str) -> Iterator[None]:
    """As its kubelet registers it."""
    client.create("/api/v1/nodes", node(name, Hardware(memory=f"{MEMORY_MIB}Mi", cpu="2")))
    client.create(LEASES, lease(name, int(TIMES.lease), 0.0))
    try:
        yield
    finally:
        remove(client, name)
        with contextlib.suppress(ApiError):
            client.delete(f"{REPORTS}/{name}")


def follow(
    machine: Node, death: Death, client: ApiClient, monitor: Path
) -> tuple[str, float, float | None]:
    """How it ended, when, and when it was NotReady; monotonic."""
    until = time.monotonic() + DIES_SECONDS
    while time.monotonic() < until:
        if machine.has_ended:
            return "panic", end_of(machine), None
        if machine.stamp_of("the hog is gone"):
            break
        if death.kind == "freeze" and machine.stamp_of("ends now: freeze"):
            vm_monitor.pause(monitor)
            return "frozen", time.monotonic(), None
        if condition(client.get(f"/api/v1/nodes/{death.node}")) == "Unknown":
            not_ready = time.monotonic()
            after = not_ready + AFTER_SECONDS
            while time.monotonic() < after and not machine.has_ended:
                time.sleep(0.2)
            return "silent", not_ready, not_ready
        time.sleep(0.2)
    return "alive", time.monotonic(), None


def end_of(machine: Node) -> float:
    """The kernel's last words; else the last line of all."""
    time.sleep(0.5)  # the rest of the console is read
    found = machine.stamp_of("Kernel panic - not syncing")
    return found if found is not None else machine.lines[-1][0]


def is_of(request: Request, name: str) -> bool:
    """Something that the agent of that node wrote."""
    if not request.user.endswith(":seawall-agent") or not request.is_write:
        return False
    if request.resource.startswith("events"):
        return bool(((request.body or {}).get("regarding") or {}).get("name") == name)
    return request.name == name


def wanted(runs: int) -> Sequence[Death]:
    """The kinds in turn: who breaks off has some of each."""
    return [drawn(ORDER[n % len(ORDER)], n // len(ORDER) * 2 + 1 + (n % len(ORDER) > 2))
            for n in range(runs)]  # fmt: skip
