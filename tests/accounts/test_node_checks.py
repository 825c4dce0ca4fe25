"""Each kind of broken node by what its files say, a sound one, and one that has no such files."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from tests.case_host import CaseHost

from seawall.accounts.node_checks import (
    clock_kept,
    cpus,
    driver_version,
    edac,
    filesystem_space,
    gpu_count,
    gpu_devices,
    gpu_resets,
    huge_pages,
    infiniband,
    kernel_log_faults,
    kernel_state,
    links,
    memory_size,
    missing_mounts,
    munge_up,
    read_only,
    services,
    stuck_tasks,
    swap_use,
)
from seawall.accounts.node_checks.answer import NodeAnswer, NodeFault
from seawall.accounts.node_checks.table import CHECKS
from seawall.accounts.node_checks.wanted import WantedNode
from seawall.host.recording import Round

MOUNTS = (
    "20 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw\n"
    "21 20 0:40 / /home rw - nfs4 srv:/home rw\n"
    "22 20 7:1 / /snap/x/1 ro,nodev - squashfs /dev/loop1 ro\n"
    "23 20 0:22 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro\n"
)
GPU = "/sys/bus/pci/devices/0000:3b:00.0"
GPU2 = "/sys/bus/pci/devices/0000:86:00.0"
PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB"


def host(files: Mapping[str, str | bytes], probes: Mapping[str, Any] | None = None,
         links_to: Mapping[str, str] | None = None) -> CaseHost:  # fmt: skip
    return CaseHost(Round(
        files={path: text.encode() if isinstance(text, str) else text
               for path, text in files.items()},
        links=dict(links_to or {}),
        probes={("device_nodes", json.dumps({"pids": []})): probes} if probes else {},
    ))  # fmt: skip


def words(answers: Iterable[NodeAnswer]) -> list[str]:
    return [one.words for one in answers if isinstance(one, NodeFault)]


def gpus(count: int, config: bytes = b"\xde\x10\x20\x23") -> tuple[dict[str, Any], dict[str, str]]:
    files: dict[str, Any] = {"/proc/driver/nvidia/version": "NVRM version: 550"}
    for folder in (GPU, GPU2)[:count]:
        files |= {f"{folder}/vendor": "0x10de\n", f"{folder}/class": "0x030200\n",
                  f"{folder}/config": config}  # fmt: skip
    return files, {
        f"{folder}/driver": "../../../bus/pci/drivers/nvidia" for folder in (GPU, GPU2)[:count]
    }


def meminfo(gib: int) -> str:
    return f"MemTotal: {gib << 20} kB\nMemFree: 1 kB\nBuffers: 1 kB\nCached: 1 kB\n"


SWAP = "Filename Type Size Used Priority\n"

BROKEN: dict[str, tuple[Any, dict[str, Any], dict[str, Any], list[str]]] = {
    "a disk that fell to read-only": (
        read_only, {"/proc/1/mountinfo": MOUNTS.replace("/dev/sda2 rw", "/dev/sda2 ro")}, {},
        ["/ (ext4) is read-only"],
    ),
    "the same by ext4 since 6.15": (
        read_only, {"/proc/1/mountinfo": MOUNTS.replace("sda2 rw", "sda2 rw,emergency_ro")}, {},
        ["/ (ext4) is read-only"],
    ),
    "a mount that should be written to is read-only": (
        read_only, {"/proc/1/mountinfo": MOUNTS.replace("/home rw", "/home ro")},
        {"writable": ("/home",)}, ["/home (nfs4) is read-only"],
    ),
    "a mount is missing": (
        missing_mounts, {"/proc/1/mountinfo": MOUNTS},
        {"mounts": ("/home", "/scratch lustre")}, ["/scratch is not mounted"],
    ),
    "a mount is of another type": (
        missing_mounts, {"/proc/1/mountinfo": MOUNTS}, {"mounts": ("/home lustre",)},
        ["/home is nfs4, not lustre"],
    ),
    "memory is gone": (
        memory_size, {"/proc/meminfo": meminfo(48)}, {"memory_mib": 60 << 10},
        ["48.0 GiB of 60.0 GiB"],
    ),
    "processors are gone": (
        cpus, {"/sys/devices/system/cpu/online": "0-2,4-6\n"}, {"cpus": 8},
        ["6 of 8 processors are online"],
    ),
    "a processor is offline": (
        cpus, {"/sys/devices/system/cpu/online": "0-2\n", "/sys/devices/system/cpu/present": "0-3"},
        {}, ["3 of 4 processors are online"],
    ),
    "memory errors": (
        edac, {"/sys/devices/system/edac/mc/mc0/ue_count": "0\n",
               "/sys/devices/system/edac/mc/mc1/ue_count": "2\n"}, {},
        ["2 errors of memory that could not be corrected, controller mc1"],
    ),
    "the kernel oopsed": (
        kernel_state, {"/proc/sys/kernel/tainted": f"{1 << 7 | 1 << 12}\n"}, {},
        ["the kernel oopsed since boot (/proc/sys/kernel/tainted)"],
    ),
    "a processor was locked up and a machine check came": (
        kernel_state, {"/proc/sys/kernel/tainted": f"{1 << 14 | 1 << 4}\n"}, {},
        ["a machine check was reported since boot (/proc/sys/kernel/tainted)",
         "a processor was locked up since boot (/proc/sys/kernel/tainted)"],
    ),
    "a kernel that nobody meant": (
        kernel_state,
        {"/proc/sys/kernel/tainted": "0\n", "/proc/sys/kernel/osrelease": "6.1.0-1\n"},
        {"kernel": "6.1.0-2"}, ["the kernel is 6.1.0-1, not 6.1.0-2"],
    ),
    "another driver": (
        driver_version, {"/sys/module/nvidia/version": "550.54\n"}, {"nvidia_driver": "560.1"},
        ["NVIDIA's driver is 550.54, not 560.1"],
    ),
    "no driver": (driver_version, {}, {"nvidia_driver": "560.1"},
                  ["NVIDIA's driver is not loaded"]),
    "swap is on": (
        swap_use, {"/proc/swaps": SWAP + "/dev/sda3 partition 1024 0 -2\n"}, {"swap": False},
        ["swap is on"],
    ),
    "tasks are stuck": (
        stuck_tasks, {f"/proc/{pid}/stat": f"{pid} (a b) c) D 1 1" for pid in range(10, 20)},
        {"stuck_tasks": 9}, ["10 of 10 processes are in state D"],
    ),
    "a service has no process": (
        services, {"/sys/fs/cgroup/system.slice/sssd.service/cgroup.procs": "",
                   "/sys/fs/cgroup/system.slice/slurmd.service/cgroup.procs": "5\n"},
        {"services": ("sssd", "slurmd.service", "nslcd")},
        ["sssd.service has no process", "nslcd.service has no process"],
    ),
    "a port is down and one is slow": (
        infiniband, {"/sys/class/infiniband/mlx5_0/ports/1/state": "1: DOWN\n",
                     "/sys/class/infiniband/mlx5_1/ports/1/state": "4: ACTIVE\n",
                     "/sys/class/infiniband/mlx5_1/ports/1/rate": "100 Gb/sec (4X EDR)\n"},
        {"infiniband": ("mlx5_0:1", "mlx5_1:1 200", "mlx5_2")},
        ["mlx5_0:1 is down", "mlx5_1:1 runs at 100 Gb/sec (4X EDR)", "mlx5_2 is not there"],
    ),
    "a network link is down and one is slow": (
        links, {"/sys/class/net/eth0/operstate": "down\n", "/sys/class/net/eth1/operstate": "up\n",
                "/sys/class/net/eth1/speed": "1000\n"},
        {"links": ("eth0", "eth1 25000", "eth2")},
        ["eth0 is down", "eth1 runs at 1000 of 25000 Mb/s", "eth2 is not there"],
    ),
    "huge pages that nobody gave back": (
        huge_pages, {f"{PAGES}/nr_hugepages": "512\n", f"{PAGES}/free_hugepages": "500\n"},
        {"huge_pages_idle": 0}, ["12 huge pages in use while no job runs"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_node_is_told(name: str) -> None:
    module, files, wanted, told = BROKEN[name]
    assert words(module.look(host(files), WantedNode(**wanted))) == told


def test_hyperthreading_that_is_not_as_it_should_be() -> None:
    on = host({"/sys/devices/system/cpu/smt/active": "1\n"})
    assert words(cpus.look_at_threads(on, WantedNode(smt=False))) == ["hyperthreading is on"]
    assert not list(cpus.look_at_threads(on, WantedNode(smt=True)))
    assert not list(cpus.look_at_threads(on, WantedNode()))


def test_threads_that_are_switched_off_are_no_lost_processors() -> None:
    files = {"/sys/devices/system/cpu/online": "0-1\n", "/sys/devices/system/cpu/present": "0-3\n",
             "/sys/devices/system/cpu/smt/control": "forceoff\n"}  # fmt: skip
    assert not list(cpus.look(host(files), WantedNode()))


def test_gpus_that_are_gone() -> None:
    files, driver = gpus(1)
    assert not words(gpu_count.look(host(files, links_to=driver), WantedNode(gpus=1)))
    assert words(gpu_count.look(host(files, links_to=driver), WantedNode(gpus=2))) == [
        "1 of 2 GPUs"
    ]
    lost, driver = gpus(2, b"\xff" * 64)
    assert words(gpu_count.look(host(lost, links_to=driver), WantedNode())) == [
        "the GPU at 0000:3b:00.0 has fallen off the bus",
        "the GPU at 0000:86:00.0 has fallen off the bus",
    ]
    files, driver = gpus(2)
    del driver[f"{GPU2}/driver"]
    assert words(gpu_count.look(host(files, links_to=driver), WantedNode())) == [
        "the GPU at 0000:86:00.0 has no driver"
    ]
    del files["/proc/driver/nvidia/version"]
    assert not words(gpu_count.look(host(files, links_to=driver), WantedNode()))


def test_control_nodes_that_nobody_made() -> None:
    devices = "Character devices:\n195 nvidia\n195 nvidiactl\n510 nvidia-uvm\n\nBlock devices:\n"
    node = ["/dev/nvidiactl", "c", 195, 255, 0o666, 0, 0]
    probes = {"host": {"nodes": [node], "links": [], "left_out": 0}}
    told = words(gpu_devices.look(host({"/proc/devices": devices}, probes), WantedNode()))
    assert [line for line in told if line.startswith("/dev/nvidia-uvm ")] == [
        "/dev/nvidia-uvm is missing"
    ]
    plain = "Character devices:\n  1 mem\n\nBlock devices:\n"
    assert not list(gpu_devices.look(host({"/proc/devices": plain}), WantedNode()))


def log(*faults: list[Any], now: float = 10_000.0) -> dict[str, Any]:
    return {"now": now, "faults": list(faults), "is_whole": True}


def test_xids_of_hardware_until_the_driver_is_loaded_again() -> None:
    lost = [100.0, "xid", "0000:3b:00", 79]
    program = [200.0, "xid", "0000:3b:00", 31]
    assert words(kernel_log_faults.xids(log(lost, program, lost), WantedNode())) == [
        "Xid 79 (the GPU has fallen off the bus) of the GPU at 0000:3b:00"
    ]
    again = [300.0, "driver_loaded", "", 0]
    assert not words(kernel_log_faults.xids(log(lost, program, again), WantedNode()))


@pytest.mark.parametrize(
    ("look", "fault", "told"),
    [
        (kernel_log_faults.hung, ["hung", "120", 120],
         "1 message of hung tasks in the kernel's log within an hour"),
        (kernel_log_faults.disks, ["disk", "sda", 0],
         "1 error of sda in the kernel's log within an hour"),
        (kernel_log_faults.heat, ["thermal", "3", 3],
         "1 processor slowed down for heat within an hour"),
        (kernel_log_faults.daemons, ["daemon_oom", "sssd.service", 0],
         "sssd.service lost a process when the node ran out of memory"),
    ],
)  # fmt: skip
def test_what_the_kernel_logged_within_an_hour(look: Any, fault: list[Any], told: str) -> None:
    assert words(look(log([9_000.0, *fault]), WantedNode())) == [told]
    assert not words(look(log([1_000.0, *fault]), WantedNode()))
    assert not words(look({"faults": "x"}, WantedNode()))
    assert not words(look(None, WantedNode()))


def test_an_image_of_a_job_is_its_own_affair() -> None:
    fallen = MOUNTS + "30 20 7:2 / /x rw - ext4 /dev/loop2 ro\n"
    node = host({"/proc/1/mountinfo": fallen})
    assert not words(read_only.look(node, WantedNode()))
    assert words(read_only.look(node, WantedNode(writable=("/x",)))) == ["/x (ext4) is read-only"]
    assert not words(kernel_log_faults.disks(log([9_999.0, "disk", "loop2", 0]), WantedNode()))


def test_a_full_file_system_by_bytes_and_by_inodes() -> None:
    wanted = WantedNode(free_percent={"/tmp": 5.0})
    room = {"blocks": 1000, "blocks_free": 10, "files": 100, "files_free": 0}
    assert words(filesystem_space.look("/tmp", room, wanted)) == [
        "/tmp: 1.0 % of its space is free", "/tmp: 0.0 % of its inodes is free",
    ]  # fmt: skip
    room |= {"blocks_free": 500, "files": 0}  # Lustre's and btrfs' answer
    assert not words(filesystem_space.look("/tmp", room, wanted))


def test_a_clock_that_nobody_keeps() -> None:
    assert words(clock_kept.look({"is_kept": False}, WantedNode(clock=True)))
    assert not words(clock_kept.look({"is_kept": False}, WantedNode()))
    assert not words(clock_kept.look({"is_kept": True}, WantedNode(clock=True)))


@pytest.mark.parametrize(
    ("answer", "is_told"), [("up", 0), ("refused", 1), ("absent", 1), ("no_folder", 0)]
)
def test_munged_that_is_gone(answer: str, is_told: int) -> None:
    assert len(words(munge_up.look(answer, WantedNode()))) == is_told


def test_gpus_that_need_a_reset_and_memory_that_nobody_holds() -> None:
    rows: list[Any] = [
        {"index": 0, "used": 500 << 20, "has_processes": False, "uncorrected": 0,
         "remap_pending": False, "remap_failed": False},
        {"index": 1, "used": 40 << 30, "has_processes": False, "remap_pending": True},
        {"index": 2, "used": 40 << 30, "has_processes": True, "uncorrected": 3},
        {"index": 3, "problem": "gpu is lost"},
        {"index": 4, "used": 40 << 30, "has_processes": None, "remap_failed": True},
    ]  # fmt: skip
    assert words(gpu_resets.look({"devices": rows}, WantedNode(gpus=8))) == [
        "the driver has 5 of 8 GPUs",
        "GPU 1: a row of its memory waits for a reset to be remapped",
        "GPU 2: 3 errors of memory that could not be corrected",
        "GPU 3: gpu is lost",
        "GPU 4: a row of its memory could not be remapped",
    ]
    assert words(gpu_resets.kept({"devices": rows}, WantedNode())) == [
        "GPU 1: 40.0 GiB in use by no process"
    ]
    assert words(gpu_resets.look({"problem": "driver not loaded"}, WantedNode())) == [
        "the driver cannot be asked: driver not loaded"
    ]


SOUND = {
    "/proc/1/mountinfo": MOUNTS, "/proc/meminfo": meminfo(64), "/proc/swaps": SWAP,
    "/proc/devices": "Character devices:\n  1 mem\n\nBlock devices:\n",
    "/sys/devices/system/cpu/online": "0-7\n", "/sys/devices/system/cpu/present": "0-7\n",
    "/sys/devices/system/cpu/smt/active": "0\n", "/proc/sys/kernel/tainted": "12288\n",
    "/proc/sys/kernel/osrelease": "6.1.0-2\n", "/proc/5/stat": "5 (x) S 1",
    "/sys/fs/cgroup/system.slice/sssd.service/a/b/cgroup.procs": "7\n",
    "/sys/class/net/eth0/operstate": "up\n", "/sys/class/net/eth0/speed": "25000\n",
    "/sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "/sys/class/infiniband/mlx5_0/ports/1/rate": "200 Gb/sec (4X HDR)\n",
    f"{PAGES}/nr_hugepages": "512\n", f"{PAGES}/free_hugepages": "512\n",
    "/sys/module/nvidia/version": "550.54\n",
}  # fmt: skip
EVERYTHING = WantedNode(
    mounts=("/home nfs4",), writable=("/", "/home"), gpus=2, memory_mib=60 << 10, cpus=8,
    smt=False, swap=False, kernel="6.1.0-2", services=("sssd",), infiniband=("mlx5_0:1 200",),
    links=("eth0 25000",), huge_pages_idle=0, nvidia_driver="550.54",
)  # fmt: skip


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_sound_node_is_not_blamed(check: Any) -> None:
    files, driver = gpus(2)
    assert not list(check.look(host(SOUND | files, links_to=driver), EVERYTHING))


BLIND_IS_FINE = {"edac", "services", "gpu_driver", "infiniband", "links"}
"""No EDAC at all is a machine without it; of the others absence is the fault."""


@pytest.mark.parametrize(
    "check", [one for one in CHECKS if one.name not in BLIND_IS_FINE], ids=lambda check: check.name
)
def test_what_cannot_be_read_is_not_seen(check: Any) -> None:
    answers = list(check.look(host({}), EVERYTHING))
    assert answers
    assert not words(answers)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_files_of_another_form_break_no_check(check: Any) -> None:
    strange = dict.fromkeys(SOUND, b"\xff\x00 \n-1 x,,\n")
    files, driver = gpus(2)
    list(check.look(host(strange | files, links_to=driver), EVERYTHING))
