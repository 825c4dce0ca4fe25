"""A node as a tree of files: logs that people published, a checkpoint, NVIDIA's driver."""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

FILES: Final = Path(__file__).parent / "host/files/device_log"
RECORDED: Final = ("kubelet_syslog.log", "kubelet_old.log", "plugin_0_14.log", "plugin_0_7.log",
                   "kern.log")  # fmt: skip
BAD: Final = "GPU-3b6ec030-5adc-1847-e155-79f635584b4e"
GOOD: Final = "GPU-c24840ec-8de1-83d5-b126-08000173ae32"
PLUGIN_POD: Final = (
    "gpu-operator_nvidia-device-plugin-daemonset-x7k2p_" + "0" * 8 + "-1111-4222-8333-444444444444"
)
AT: Final = datetime(2024, 8, 9, 14, 0, tzinfo=timezone.utc).timestamp()


def plain_tree(root: Path) -> Path:
    """What ``--root`` needs to be a host, with one cgroup of version 2."""
    put(root, "/proc/1/mountinfo", "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n")
    put(root, "/proc/1/stat", "1 (init) S 0 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 1 0 1 1 1 0\n")
    put(root, "/sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n")
    put(root, "/sys/fs/cgroup/cgroup.procs", "1\n")
    put(root, "/proc/uptime", "7200.00 7200.00\n")
    return root


def whole_node(root: Path, healthy: Sequence[str] = (GOOD,)) -> Path:
    """Two GPUs, of which the kubelet hands out ``healthy``; its recorded logs."""
    plain_tree(root)
    checkpoint(root, {"nvidia.com/gpu": list(healthy)})
    log(root, "/var/log/syslog", "kubelet_syslog.log")
    log(root, f"/var/log/pods/{PLUGIN_POD}/nvidia-device-plugin/0.log", "plugin_0_14.log")
    log(root, "/var/log/kern.log", "kern.log")
    gpu(root, "0000:00:07.0", BAD)
    gpu(root, "0000:00:08.0", GOOD)
    return root


def put(root: Path, path: str, text: str | bytes, at: float = AT) -> None:
    file = root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    os.utime(file, (at, at))


def log(root: Path, path: str, name: str) -> None:
    put(root, path, (FILES / name).read_bytes())


def gpu(root: Path, address: str, uuid: str) -> None:
    text = f"Model: \t\t NVIDIA A100\nIRQ:   \t\t 72\nGPU UUID: \t {uuid}\nDevice Minor: \t 0\n"
    put(root, f"/proc/driver/nvidia/gpus/{address}/information", text)


def checkpoint(root: Path, registered: Mapping[str, list[str]]) -> None:
    data = {"PodDeviceEntries": [], "RegisteredDevices": dict(registered)}
    path = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
    put(root, path, json.dumps({"Data": data, "Checksum": 0}))
