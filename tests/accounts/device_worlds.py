"""One node with one container, in the dataclasses of the readings: what a test changes it names."""

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.case_host import parse_case

from seawall.accounts.devices.device_table import DeviceTable, tabulate
from seawall.accounts.devices.layers import LAYERS, ContainerDevices, DeviceRow, LayerAnswer
from seawall.accounts.workloads import Workload, Workloads
from seawall.host.host import JSON, Unread
from seawall.readings.boot_time import BootTime
from seawall.readings.cdi_specs import CdiSpecs
from seawall.readings.cgroup import Cgroups
from seawall.readings.char_devices import CharDevices
from seawall.readings.device_cgroups import DeviceCgroups
from seawall.readings.device_nodes import DeviceNode, DeviceNodes
from seawall.readings.device_rule import DeviceRule, rule_of
from seawall.readings.device_specs import DeviceSpec, DeviceSpecs, SpecDevice
from seawall.readings.kernel import Kernel
from seawall.readings.kubelet_devices import KubeletDevice, KubeletDevices, PodDevices
from seawall.readings.process import Process, Processes
from seawall.readings.runtime_versions import RuntimeVersions, runtime_of
from seawall.readings.scope_devices import ScopeDevices, UnitDevices
from seawall.readings.snapshot import Snapshot

ID = "90d6d4dbe64f821d43e4ef954808089d3f2f63af3fc9824d2c1e719768cd7d18"
POD_UID = "0dbd65af-6693-11eb-994b-246e9634b5c8"
CGROUPFS = f"/kubepods/burstable/pod{POD_UID}/{ID}"
SCOPE = f"cri-containerd-{ID}.scope"
SLICE = "/kubepods.slice/kubepods-burstable.slice"
SYSTEMD = f"{SLICE}/kubepods-burstable-pod{POD_UID.replace('-', '_')}.slice/{SCOPE}"
PID = 4711
PLUGIN_PID = 815
PLUGIN = "/kubepods/besteffort/podaaaaaaaa-0000-4000-8000-000000000001/" + "ab" * 32
HOOK = "/usr/bin/nvidia-container-runtime-hook"
PSEUDO = ("c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm",
          "c 5:2 rwm", "c 136:* rwm", "c *:* m", "b *:* m")  # fmt: skip
ABSENT = Unread("there", "absent")
NOW, UPTIME = 1_700_000_000.0, 86_400.0
BOOT = NOW - UPTIME
STARTED, PLUGIN_STARTED = BOOT + 3600, BOOT + 60

NVIDIA = {
    "/dev/nvidiactl": ("c", 195, 255),
    "/dev/nvidia-uvm": ("c", 237, 0),
    "/dev/nvidia-uvm-tools": ("c", 237, 1),
    "/dev/nvidia0": ("c", 195, 0),
    "/dev/nvidia1": ("c", 195, 1),
}
DRIVERS = CharDevices({1: "mem", 195: "nvidia-frontend", 237: "nvidia-uvm"}, {8: "sd"})


def nodes(numbers: Mapping[str, tuple[Any, int, int]]) -> dict[str, DeviceNode]:
    return {path: DeviceNode(path, *number, 0o666, 0, 0) for path, number in numbers.items()}


def rules(*lines: str) -> tuple[DeviceRule, ...]:
    """As devices.list writes them; a leading ``!`` denies."""
    found = [rule_of(line.lstrip("!")) for line in lines]
    return tuple(
        rule._replace(is_allow=not line.startswith("!"))
        for line, rule in zip(lines, found, strict=True)
        if rule is not None
    )


def only(*paths: str) -> dict[str, tuple[Any, int, int]]:
    return {path: NVIDIA[path] for path in paths}


def row(path: str, says: str = "yes-yes-yes-yes-yes", **told: Any) -> DeviceRow:
    """``says``: the layers in their order."""
    layers = {
        layer: LayerAnswer(word, f"why {layer}")  # type: ignore[arg-type]
        for layer, word in zip(LAYERS, says.split("-"), strict=True)
    }
    values = {"kind": "c", "major": 195, "minor": 0, "is_needed": True, "errno": 0,
              "broken_at": None}  # fmt: skip
    return DeviceRow(path=path, layers=layers, **(values | told))


def workload(cgroup: str = CGROUPFS, **told: Any) -> Workload:
    values = {
        "kind": "container", "name": "train/job-0/main", "cgroup": cgroup, "container_id": ID,
        "namespace": "train", "pod": "job-0", "pod_uid": POD_UID, "container": "main",
        "is_tenant": True,
    }  # fmt: skip
    return Workload(**(values | told))


def entry(*paths: str, **told: Any) -> PodDevices:
    """What the kubelet keeps of the container."""
    values = {
        "pod_uid": POD_UID, "container": "main", "resource": "nvidia.com/gpu", "ids": ("GPU-1",),
        "devices": tuple(KubeletDevice(path, path, "rw") for path in paths), "environment": {},
        "cdi_names": (), "mounts": (),
    }  # fmt: skip
    return PodDevices(**(values | told))


def kubelet(*paths: str, **told: Any) -> KubeletDevices:
    return KubeletDevices((entry(*paths, **told),), {"nvidia.com/gpu": ("GPU-1", "GPU-2")})


PLUGIN_WORKLOAD = workload(
    PLUGIN, name="kube-system/nvidia-device-plugin-x7/ctr", container_id="ab" * 32,
    namespace="kube-system", pod="nvidia-device-plugin-x7", container="ctr",
    pod_uid="aaaaaaaa-0000-4000-8000-000000000001",
)  # fmt: skip


def spec(
    given: Mapping[str, tuple[Any, int, int]], *lines: str, **told: Any
) -> DeviceSpec:  # fmt: skip
    """Its nodes, each with a rule; ``lines`` are further rules."""
    made = [f"{kind} {major}:{minor} rw" for kind, major, minor in given.values()]
    values = {
        "container_id": ID, "source": "config.json", "environment": {}, "cdi_names": (),
        "devices": tuple(SpecDevice(path, *n, None, None, None) for path, n in given.items()),
        "rules": rules("!a *:* rwm", *made, *lines), "hooks": (), "device_mounts": (),
        "cgroups_path": None,
    }  # fmt: skip
    return DeviceSpec(**(values | told))


def process(pid: int, ticks: int | None = None) -> Process:
    """Started at STARTED, or at PLUGIN_STARTED."""
    if ticks is None:
        ticks = int(((PLUGIN_STARTED if pid == PLUGIN_PID else STARTED) - BOOT) * 100)
    return Process(pid, "python", "S", 1, 0, 0, 0, 0, 0, 1, ticks, 0, 0)


def moment_of_kernel() -> Kernel:
    return Kernel(
        release="6.1.0", boot_id=None, node_name="node", machine="x86_64", page_size=4096,
        page_size_source="probe", clock_ticks=100, cpus_online=4, cpus_possible=4,
        uptime_seconds=UPTIME, taken_at_unix_seconds=NOW, monotonic_seconds=UPTIME, reader_uid=0,
        reader_capabilities=("SYS_ADMIN",),
    )  # fmt: skip


def versions(*said: str, systemd: int | None = 252, reloaded: float | None = None) -> (
    RuntimeVersions
):  # fmt: skip
    """``runc version 1.1.5``: what the programs print."""
    found = [runtime_of(f"/usr/bin/{number}", one) for number, one in enumerate(said)]
    return RuntimeVersions(
        runtimes=tuple(one for one in found if one is not None), bundle_paths=(), systemd=systemd,
        systemd_text=str(systemd or ""), units_loaded=reloaded,
    )  # fmt: skip


def unit(*allow: str, policy: str = "strict") -> ScopeDevices:
    """The container's scope; each ``/dev/char/195:255 rw``."""
    pairs = tuple((what, access) for what, access in (line.split() for line in allow))
    return ScopeDevices({SCOPE: UnitDevices(policy, pairs, ("50-DeviceAllow.conf",))}, True)


@dataclass
class World:
    """A node; what is not told works."""

    cgroup: str = CGROUPFS
    host: dict[str, tuple[Any, int, int]] = field(default_factory=lambda: dict(NVIDIA))
    own: dict[str, tuple[Any, int, int]] | str = field(default_factory=dict)
    """The container's /dev; a word: why it could not be read."""
    plugin: dict[str, tuple[Any, int, int]] | None = None
    links: dict[tuple[int, int], str] = field(default_factory=dict)
    drivers: CharDevices | Unread = DRIVERS
    specs: DeviceSpec | Unread | None = None
    kernel: tuple[str, ...] | Unread = ()
    groups: DeviceCgroups | Unread | None = None
    scopes: ScopeDevices | Unread = field(default_factory=lambda: ScopeDevices({}, True))
    kubelet: KubeletDevices | Unread = ABSENT
    cdi: CdiSpecs | Unread = field(default_factory=lambda: CdiSpecs(()))
    versions: RuntimeVersions | Unread = field(
        default_factory=lambda: Unread("runtime_versions", "absent")
    )
    changed: dict[str, int] = field(default_factory=dict)
    """Nodes of the host -> when they were made."""
    boot: BootTime | Unread = field(default_factory=lambda: BootTime(int(BOOT)))
    kernel_moment: Kernel | Unread = field(default_factory=moment_of_kernel)
    errors: dict[str, int] = field(default_factory=dict)
    """Path -> errno of the try, beyond what the rules and nodes here tell."""
    modes: dict[str, int] = field(default_factory=dict)
    """Path -> mode of the container's node, where it is not 0666."""
    workload: Workload | None = None
    is_running: bool = True
    asked: list[str] = field(default_factory=list)
    answers: dict[str, Any] = field(default_factory=dict)
    """Of further probes."""

    def table(self) -> DeviceTable:
        snapshot = Snapshot(_Machine(self), self._known())
        found = tabulate(snapshot)
        assert isinstance(found, DeviceTable), found
        return found

    def container(self) -> ContainerDevices:
        (found,) = self.table().containers
        return found

    def mode(self) -> str | None:
        diagnosis = self.container().diagnosis
        return diagnosis.mode if diagnosis else None

    def _known(self) -> dict[type[Any], Any]:
        mine = self.workload or workload(self.cgroup)
        members = {mine.cgroup: (PID,)} if self.is_running else {}
        by_cgroup, by_pid = {mine.cgroup: mine}, dict.fromkeys(members and [PID], mine)
        if self.plugin is not None:
            members[PLUGIN] = (PLUGIN_PID,)
            by_cgroup[PLUGIN] = by_pid[PLUGIN_PID] = PLUGIN_WORKLOAD
        lists = {mine.cgroup: rules(*self.kernel)} if isinstance(self.kernel, tuple) else {}
        if isinstance(self.kernel, Unread):
            lists = {mine.cgroup: self.kernel}  # type: ignore[dict-item]
        return {
            Workloads: Workloads(by_cgroup, by_pid),
            Processes: Processes({pid: process(pid) for pid in by_pid}, ()),
            Cgroups: Cgroups(None, tuple(members), "/sys/fs/cgroup", members, ()),  # type: ignore[arg-type]
            CharDevices: self.drivers,
            DeviceNodes: DeviceNodes(nodes(self.host), self.links, 0, self.changed),
            RuntimeVersions: self.versions,
            Kernel: self.kernel_moment,
            BootTime: self.boot,
            DeviceCgroups: self.groups or DeviceCgroups(1, lists, {}, {}),
            DeviceSpecs: DeviceSpecs({} if self.specs is None else {ID: self.specs}),
            KubeletDevices: self.kubelet,
            ScopeDevices: self.scopes,
            CdiSpecs: self.cdi,
        }


class _Machine:
    """Answers the two questions as the kernel would, from the world's nodes and rules."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rest = parse_case(b"why: nothing else\nverdict: quiet\n").rounds[0]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rest, name)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        self._world.asked.append(probe)
        told = json.loads(argument) if argument else None
        if probe == "device_nodes":
            return {"host": {}, "pids": {str(pid): self._own(pid) for pid in told["pids"]}}
        if probe == "device_access":
            return {"targets": {str(row[0]): self._tried(row[2]) for row in told["targets"]}}
        if probe in self._world.answers:
            return self._world.answers[probe]
        return self._rest.ask(probe, argument)

    def _own(self, pid: int) -> JSON:
        world = self._world
        found = (world.plugin or {}) if pid == PLUGIN_PID else world.own
        if isinstance(found, str):
            return {"problem": [found, "it hangs"]}
        rows = [[path, *number, 0o666, 0, 0] for path, number in sorted(found.items())]
        return {"nodes": rows, "left_out": 0}  # type: ignore[dict-item]

    def _tried(self, paths: list[str]) -> JSON:
        if isinstance(self._world.own, str):
            return {"tried": [], "problem": [self._world.own, "it hangs"]}
        return {"tried": [self._one(path) for path in paths], "problem": None}

    def _one(self, path: str) -> JSON:
        world = self._world
        assert isinstance(world.own, dict)
        if path not in world.own:
            return [path, errno.ENOENT, None, None, None, None, None]
        kind, major, minor = world.own[path]
        found = world.errors.get(path)
        if found is None:
            found = 0 if self._is_allowed(kind, major, minor) else errno.EPERM
        return [path, found, kind, major, minor, world.modes.get(path, 0o666), None]

    def _is_allowed(self, kind: str, major: int, minor: int) -> bool:
        if isinstance(self._world.kernel, Unread):
            return True
        return any(
            rule.kind in (None, kind) and rule.major in (None, major)
            and rule.minor in (None, minor) and {"r", "w"} <= set(rule.access)
            for rule in rules(*self._world.kernel)
        )  # fmt: skip


def changed(world: World, **told: Any) -> World:
    return replace(world, asked=[], **told)
