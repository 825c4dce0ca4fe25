"""A node of one's own: this machine with an empty /run and /var/log, for real containers.

A mount namespace keeps what runtimes and tests write there off the machine; everything runs
in it through ``nsenter``.  Cgroups are the machine's own and are removed at the end.
"""

import contextlib
import hashlib
import io
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.end_to_end import cgroups
from tests.end_to_end.verbs import Ran, run

BUSYBOX = Path("/bin/busybox")
HELD_BYTES = 50 << 20
HOLD = "busybox dd if=/dev/zero bs=50M count=1 2>/dev/null | busybox sleep 1000"
"""dd fills one buffer of 50 MiB and waits for ever, for nobody reads its pipe."""
POD_UID = "5ea0a11d-{:04x}-4000-8000-000000000000"


def missing(*programs: str) -> str | None:
    """Why no container can run here, and the command that would provide it."""
    packages = {"ctr": "containerd", "unshare": "util-linux", "nsenter": "util-linux"}
    for program in (*programs, "unshare", "nsenter"):
        if shutil.which(program) is None:
            return f"{program} is missing: apt-get install {packages.get(program, program)}"
    if not BUSYBOX.exists() or b"statically" not in _kind(BUSYBOX):
        return "a static busybox is missing: apt-get install busybox-static"
    return cgroups.missing()


def _kind(program: Path) -> bytes:
    """A static program has no interpreter (PT_INTERP names ld.so)."""
    return b"dynamic" if b"/ld-linux" in program.read_bytes()[:4096] else b"statically"


@dataclass(frozen=True)
class Node:
    """Where the containers run."""

    pid: int
    folder: Path

    def run(self, *command: str, most_seconds: float = 60) -> Ran:
        inside = ["nsenter", "-t", str(self.pid), "-m", "--wd=/", "--", *command]
        return run(inside, most_seconds=most_seconds)

    def need(self, *command: str) -> str:
        """The output of a command that has to succeed."""
        ran = self.run(*command)
        assert ran.status == 0, f"{command}: {ran.out!r} {ran.err!r}"
        return ran.text

    def start(self, *command: str) -> None:
        """A container's command: what runs on must not hold our pipes."""
        self.need("sh", "-c", '"$@" </dev/null >/dev/null 2>/run/last-error', "sh", *command)

    def start_pod(self, pod: str, uid: str, key: str, bundle: Path) -> int:
        """runc's container ``key``, which the kubelet's link to its log calls shop/POD/app; its
        pid.
        """
        log = f"/var/log/containers/{pod}_shop_app-{key}.log"
        self.need("ln", "-s", f"/var/log/pods/shop_{pod}_{uid}/app/0.log", log)
        self.start("runc", "run", "-d", "-b", str(bundle), key)
        return int(json.loads(self.need("runc", "state", key))["pid"])

    def seawall(self, *words: str) -> Ran:
        return self.run(sys.executable, "-m", "seawall", *words)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The workloads of ``seawall pods --json``."""
        found = self.seawall("pods", "--json", *words).answered().document["workloads"]
        assert isinstance(found, list)
        return found

    def row(self, name: str, *words: str) -> dict[str, Any]:
        """The one of that name."""
        rows = self.rows(*words)
        found = [row for row in rows if row["name"] == name]
        assert len(found) == 1, [row["name"] for row in rows]
        return found[0]

    def wait_for_hold(self, name: str) -> dict[str, Any]:
        """The row once its dd has filled its buffer."""
        deadline = time.monotonic() + 30
        while (row := self.row(name))["anon_bytes"] < HELD_BYTES:
            assert time.monotonic() < deadline, row
            time.sleep(0.2)
        return row


@contextlib.contextmanager
def node(folder: Path) -> Iterator[Node]:
    """The namespace, until the end of the test."""
    script = (
        "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/log && mkdir -p "
        "/var/log/containers /var/log/pods && echo ready && exec sleep infinity"
    )
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdout=subprocess.PIPE)
    try:
        assert holder.stdout
        assert holder.stdout.readline() == b"ready\n", "no mount namespace: needs CAP_SYS_ADMIN"
        yield Node(holder.pid, folder)
    finally:
        holder.kill()
        holder.communicate()


def new_id() -> str:
    """As runtimes make them."""
    return secrets.token_hex(32)


def new_uid() -> str:
    """A pod's, told apart from real ones."""
    return POD_UID.format(secrets.randbits(16))


def remove_cgroups(*paths: str) -> None:
    """The folders of ``paths`` and above that are empty now, in every hierarchy."""
    homes = [cgroups.V2, *(p for p in cgroups.V2.iterdir() if p.is_dir() and not p.is_symlink())]
    for home in homes:
        for path in paths:
            found = home / path.strip("/")
            while found != home:
                _remove_cgroup(found)
                found = found.parent


def _remove_cgroup(folder: Path) -> None:
    """The kernel lets a cgroup go a moment after its last process."""
    for _ in range(20):
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if (folder / "cgroup.procs").exists() and not any(p.is_dir() for p in folder.iterdir()):
                time.sleep(0.05)
                continue
        return


def oci_config(cgroup: str, limit_bytes: int) -> dict[str, Any]:
    """An OCI config by ``runc spec``, without what needs CAP_SYS_RESOURCE."""
    spec = subprocess.run(
        ["runc", "spec"], cwd=(folder := _empty_folder()), check=True, capture_output=True
    )
    assert spec.returncode == 0
    config: dict[str, Any] = json.loads((folder / "config.json").read_text())
    shutil.rmtree(folder)
    config["process"].pop("rlimits", None)
    config["process"]["terminal"] = False
    config["process"]["args"] = ["/bin/busybox", "sh", "-c", HOLD]
    config["process"]["env"] += ["SECRET_TOKEN=never-read-this"]
    config["linux"]["cgroupsPath"] = cgroup
    config["linux"]["resources"]["memory"] = {"limit": limit_bytes}
    return config


def _empty_folder() -> Path:
    folder = Path(f"/tmp/seawall-spec-{os.getpid()}-{secrets.token_hex(4)}")
    folder.mkdir()
    return folder


def make_bundle(folder: Path, config: dict[str, Any]) -> Path:
    """A runc bundle whose root holds a busybox and nothing else."""
    for name in ("bin", "proc", "dev", "sys", "tmp"):
        (folder / "rootfs" / name).mkdir(parents=True)
    shutil.copy(BUSYBOX, folder / "rootfs/bin/busybox")
    (folder / "rootfs/bin/sh").symlink_to("busybox")
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def make_image(path: Path, name: str, command: Sequence[str] = ("/bin/busybox",)) -> None:
    """An OCI image of one layer: busybox."""
    layer = _tar({"bin/busybox": BUSYBOX.read_bytes()}, ("bin", "proc", "dev", "sys", "tmp", "run"))
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    config = _json(
        architecture=machine, os="linux", config={"Cmd": [*command]},
        rootfs={"type": "layers", "diff_ids": [_digest(layer)]},
    )  # fmt: skip
    prefix = "application/vnd.oci.image"
    manifest = _json(
        schemaVersion=2,
        mediaType=f"{prefix}.manifest.v1+json",
        config=_blob(f"{prefix}.config.v1+json", config),
        layers=[_blob(f"{prefix}.layer.v1.tar", layer)],
    )
    entry = _blob(f"{prefix}.manifest.v1+json", manifest)
    index = _json(
        schemaVersion=2,
        manifests=[{**entry, "annotations": {"io.containerd.image.name": name}}],
    )
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    for blob in (layer, config, manifest):
        files[f"blobs/sha256/{_digest(blob).partition(':')[2]}"] = blob
    path.write_bytes(_tar(files, ()))


def _tar(files: dict[str, bytes], folders: Sequence[str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in folders:
            member = tarfile.TarInfo(name)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def _json(**document: object) -> bytes:
    return json.dumps(document).encode()


def _digest(blob: bytes) -> str:
    return "sha256:" + hashlib.sha256(blob).hexdigest()


def _blob(media_type: str, blob: bytes) -> dict[str, object]:
    return {"mediaType": media_type, "digest": _digest(blob), "size": len(blob)}
