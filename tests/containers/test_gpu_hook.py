"""NVIDIA's legacy way for real: a hook makes nodes and rules that the runtime never hears of.

runc runs a program of that name at the container's start, which does what libnvidia-container
does: mknod in the container's /dev, and a line for each in devices.allow.  systemd does not run
this machine: its unit is a file as runc would have given it, and its reload is what systemd
writes into the cgroup then.  The refusals are the kernel's.
"""

import errno
import gzip
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.containers import node as nodes
from tests.containers.gpu_node import NODES, Wanted, config_of, mknod, set_up
from tests.containers.test_gpu_runc import DEVICES, device, missing, says, soon_of, told

pytestmark = [pytest.mark.system, pytest.mark.beside]
HOOK = "nvidia-container-runtime-hook"
STANDARD = ("c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm", "c 5:0 rwm",
            "c 5:2 rwm", "c 136:* rwm", "c *:* m", "b *:* m")  # fmt: skip
UNIT = "[Scope]\nDevicePolicy=strict\nDeviceAllow=/dev/char/1:3 rwm\nDeviceAllow=char-* m\n"
SCRIPT = """#!/bin/sh
pid=$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/')
group=$(sed -n 's/^[0-9]*:[^:]*devices[^:]*://p' /proc/$pid/cgroup)
@LINES@
"""


class Hooked:
    """A container that a hook gave its devices, below systemd's names or the kubelet's own."""

    def __init__(self, node: nodes.Node, folder: Path, name: str, *, is_unit: bool) -> None:
        self.node, self.name, self.key, uid = node, name, nodes.new_id(), nodes.new_uid()
        self.unit = f"cri-containerd-{self.key}.scope"
        self.cgroup = f"/kubepods/besteffort/pod{uid}/{self.key}"
        if is_unit:
            pod = f"kubepods-besteffort-pod{uid.replace('-', '_')}.slice"
            self.cgroup = f"/kubepods.slice/kubepods-besteffort.slice/{pod}/{self.unit}"
            node.need("sh", "-c", "mkdir -p /run/systemd/system /run/systemd/transient; "
                      f"printf '{UNIT}' > /run/systemd/transient/{self.unit}")  # fmt: skip
        bundle = nodes.make_bundle(folder / name, self._config(folder / name))
        self._write_hook(bundle)
        node.start_pod(name, uid, self.key, bundle)

    def _config(self, bundle: Path) -> dict[str, Any]:
        config = config_of(Wanted(name=self.name, nodes={}), self.cgroup)
        config["process"]["env"].append("NVIDIA_VISIBLE_DEVICES=all")
        config["hooks"] = {"prestart": [{"path": str(bundle / HOOK)}]}
        return config

    @staticmethod
    def _write_hook(bundle: Path) -> None:
        lines = []
        for path, number in NODES.items():
            made = mknod(f"{bundle}/rootfs{path}", number)
            lines.append(f"nsenter -t $pid -m {made}")
            rule = f"c {number[0]}:{number[1]} rw"
            lines.append(f"echo {rule} > {DEVICES}$group/devices.allow")
        (bundle / HOOK).write_text(SCRIPT.replace("@LINES@", "\n".join(lines)))
        (bundle / HOOK).chmod(0o755)

    def reload(self) -> None:
        """What systemd does with a cgroup of version 1: deny all, allow what it knows of."""
        folder = DEVICES / self.cgroup.strip("/")
        (folder / "devices.deny").write_text("a")
        for rule in STANDARD:
            (folder / "devices.allow").write_text(rule)

    def end(self) -> None:
        self.node.run("runc", "delete", "-f", self.key)
        nodes.remove_cgroups(self.cgroup)


@pytest.fixture(scope="module")
def moments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """``seawall gpu`` before and after."""
    if why := missing():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("hook")
    with nodes.node(folder) as plain:
        set_up(plain)
        made = []
        try:
            for name, is_unit in (("by-systemd", True), ("by-kubelet", False)):
                made.append(Hooked(plain, folder, name, is_unit=is_unit))
            found: dict[str, Any] = {"before": plain.seawall("gpu", "--json").answered().document}
            for one in made:
                one.reload()
            plain.need("touch", "/run/systemd/systemd-units-load")
            found["after"] = plain.seawall("gpu", "--json").answered().document
            bundle = folder / "node.bundle"
            assert plain.seawall("capture", "-o", str(bundle)).status == 0
            for one in made:
                shutil.rmtree(folder / one.name / "rootfs/bin")
            found["kept"] = plain.seawall("gpu", "--json", "--from", str(bundle)).document
            found["text"] = gzip.decompress(bundle.read_bytes())
            yield found
        finally:
            for one in made:
                one.end()


def test_what_the_hook_gave_works(moments: dict[str, Any]) -> None:
    for name in ("by-systemd", "by-kubelet"):
        row = told(moments["before"], name)
        assert row["promised_by"] == "NVIDIA_VISIBLE_DEVICES=all"
        assert row["diagnosis"] is None
        assert {one["errno"] for one in row["devices"]} == {0}
        assert says(device(row, "/dev/nvidia0"))["configured"] == "none"


def test_the_reload_is_foretold_where_systemd_has_the_unit(moments: dict[str, Any]) -> None:
    soon = soon_of(moments["before"], "by-systemd")
    assert soon == dict.fromkeys(
        ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"), "the next daemon-reload"
    )
    (why,) = {
        row["why"] for row in moments["before"]["about_to_break"]
        if row["device"] == "/dev/nvidia0" and row["workload"] == "shop/by-systemd/app"
    }  # fmt: skip
    assert f"{HOOK} gives it at start" in why
    assert not soon_of(moments["before"], "by-kubelet")


def test_f3_after_it(moments: dict[str, Any]) -> None:
    row = told(moments["after"], "by-systemd")
    assert row["diagnosis"]["mode"] == "F3"
    assert f"{HOOK} gave it at start" in row["diagnosis"]["cause"]
    one = device(row, "/dev/nvidia-uvm")
    assert (one["errno"], one["broken_at"]) == (errno.EPERM, "systemd")
    assert "the last daemon-reload" in row["diagnosis"]["since"]["how"]
    assert row["diagnosis"]["since"]["at"] <= moments["after"]["taken_at"]


def test_f6_where_systemd_has_no_say(moments: dict[str, Any]) -> None:
    row = told(moments["after"], "by-kubelet")
    assert row["diagnosis"]["mode"] == "F6"
    assert f"although {HOOK} gave it" in row["diagnosis"]["headline"]
    assert device(row, "/dev/nvidia0")["broken_at"] == "kernel"


def test_a_bundle_tells_the_same_and_keeps_no_secret(moments: dict[str, Any]) -> None:
    names = ("containers", "about_to_break")
    assert {n: moments["kept"][n] for n in names} == {n: moments["after"][n] for n in names}
    assert b"never-read-this" not in moments["text"]
    assert json.dumps(moments["kept"]).count("never-read-this") == 0
