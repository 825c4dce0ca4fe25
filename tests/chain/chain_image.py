"""The disk of a real Kubernetes node: Debian 12, containerd, kubelet, three images, and Seawall.

Made once for each state of its sources, into ~/.cache/seawall/chain-KEY: a root of debootstrap,
programs compiled by Go (`programs/`), the kubelet of the test plane, Debian's own kernel and runc.
What differs between nodes comes with the job's disk (`kubelet_node`).
"""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

from tests.cluster.plane_build import CACHE, PlaneProblem, build, version_wanted
from tests.kernels import built_modules, vm
from tests.kernels.guard_boots import say

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
PROGRAMS, NODE = HERE / "programs", HERE / "node"
DEBIAN = ("systemd", "systemd-sysv", "udev", "dbus", "python3-minimal", "python3", "iproute2",
          "kmod", "procps", "runc", "iptables")  # fmt: skip
CONTAINERD = "github.com/containerd/containerd/v2/cmd/"
CNI = "github.com/containernetworking/plugins/plugins/"
INSTALLED = {
    "usr/local/bin/containerd": f"{CONTAINERD}containerd",
    "usr/local/bin/containerd-shim-runc-v2": f"{CONTAINERD}containerd-shim-runc-v2",
    "usr/local/bin/ctr": f"{CONTAINERD}ctr",
    "opt/cni/bin/ptp": f"{CNI}main/ptp",
    "opt/cni/bin/loopback": f"{CNI}main/loopback",
    "opt/cni/bin/host-local": f"{CNI}ipam/host-local",
}
PAUSE = "registry.k8s.io/pause:3.10.2"
"""What containerd 2.4 runs as a pod's sandbox."""
IMAGES = {"pause": PAUSE, "hog": "docker.io/test/hog:1", "web": "docker.io/test/web:1"}
MODULE_FOLDERS = ("net", "lib", "crypto", "arch", "drivers/net/virtio_net.ko",
                  "drivers/net/veth.ko", "drivers/net/net_failover.ko", "fs/overlayfs",
                  "fs/fuse")  # fmt: skip
DISK_MIB = 3072
UNITS = ("chain-shell", "containerd", "kubelet", "seawall-guard", "seawall-agent")


def image() -> vm.Image:
    """From the cache where it is there; PlaneProblem: what is missing."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "chain.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        there = CACHE / f"chain-{key()}"
        if not there.exists():
            began = time.monotonic()
            make(there)
            say(f"made {there} in {time.monotonic() - began:.0f} s")
    (kernel,) = there.glob("vmlinuz*")
    return vm.Image(str(kernel), there / "initramfs.cpio", there / "root.ext4")


def key() -> str:
    """Of all that goes in."""
    digest = hashlib.sha256(Path(vm.debian_kernel()).name.encode())
    files = [path for folder in (PROGRAMS, NODE, vm.SOURCES) for path in folder.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts]  # fmt: skip
    files += [*(REPOSITORY / "packaging").glob("seawall-*.service")]
    for path in sorted(files):
        digest.update(str(path.relative_to(REPOSITORY)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def make(there: Path) -> None:
    if why := vm.missing() or built_modules.missing():
        raise PlaneProblem(why)
    debian = root_of_debian()
    programs = compiled()
    kubelet = build(version_wanted(), "kubelet")
    folder = there.with_suffix(".new")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    root = folder / "root"
    run("cp", "-a", str(debian), str(root))
    for name, package in INSTALLED.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(programs / package.rsplit("/", 1)[-1], root / name)
    shutil.copy(kubelet, root / "usr/local/bin/kubelet")
    (root / "root/images").mkdir()
    for program, name in IMAGES.items():
        write_oci_image(programs / program, name, root / f"root/images/{program}.tar")
    add_modules(root)
    add_node_files(root)
    add_seawall(root)
    built_modules.hold_tracepoints(root)
    disk = folder / "root.ext4"
    run("mke2fs", "-q", "-t", "ext4", "-d", str(root), "-L", "root", str(disk), f"{DISK_MIB}M")
    shutil.rmtree(root)
    (folder / "initramfs.cpio").write_bytes(vm.initramfs_of(release()))
    kernel = vm.unpacked_kernel(folder)
    if kernel.parent != folder:
        shutil.copy(kernel, folder)
    folder.rename(there)


def release() -> str:
    return Path(vm.debian_kernel()).name.removeprefix("vmlinuz-")


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=600)


def root_of_debian() -> Path:
    done = subprocess.run(
        ["nice", REPOSITORY / "tests/debian_root", "bookworm", "chain", ",".join(DEBIAN)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise PlaneProblem(done.stdout.strip() or done.stderr.strip())
    return Path(done.stdout.strip().splitlines()[-1])


def compiled() -> Path:
    """The folder with what Go makes of `programs/`."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise PlaneProblem("no Go: containerd is not built")
    digest = hashlib.sha256()
    for path in sorted(PROGRAMS.rglob("*.*")):
        digest.update(path.read_bytes() + b"\0")
    there = CACHE / f"chain-programs-{digest.hexdigest()[:16]}"
    if not there.exists():
        fresh = there.with_suffix(".new")
        fresh.mkdir(exist_ok=True)
        for package in (*INSTALLED.values(), *(f"./{name}" for name in IMAGES)):
            subprocess.run(
                ["nice", go, "build", "-mod=readonly", "-trimpath", "-ldflags", "-s -w",
                 "-o", f"{fresh}/", package],
                cwd=PROGRAMS, env={**os.environ, "CGO_ENABLED": "0"}, check=True,
            )  # fmt: skip
        fresh.rename(there)
    return there


def write_oci_image(program: Path, name: str, target: Path) -> None:
    """An image of one file, as ``ctr images import`` takes it."""
    layer = tar_of({program.name: (program.read_bytes(), 0o755)})
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": [f"/{program.name}"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest_of(layer)}"]},
    }).encode()  # fmt: skip
    media = "application/vnd.oci.image"
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": f"{media}.manifest.v1+json",
        "config": described(config, f"{media}.config.v1+json"),
        "layers": [described(layer, f"{media}.layer.v1.tar")],
    }).encode()  # fmt: skip
    names = {"io.containerd.image.name": name,
             "org.opencontainers.image.ref.name": name.rpartition(":")[2]}  # fmt: skip
    index = json.dumps({
        "schemaVersion": 2, "mediaType": f"{media}.index.v1+json",
        "manifests": [{**described(manifest, f"{media}.manifest.v1+json"), "annotations": names}],
    }).encode()  # fmt: skip
    blobs = {f"blobs/sha256/{digest_of(one)}": (one, 0o644) for one in (layer, config, manifest)}
    layout = b'{"imageLayoutVersion":"1.0.0"}'
    files = {"oci-layout": (layout, 0o644), "index.json": (index, 0o644), **blobs}
    target.write_bytes(tar_of(files))


def described(blob: bytes, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "digest": f"sha256:{digest_of(blob)}", "size": len(blob)}


def digest_of(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def tar_of(files: dict[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, (data, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


def add_modules(root: Path) -> None:
    """What a node's network and its containers' file systems need of Debian's kernel."""
    home, target = Path("/lib/modules") / release(), root / "lib/modules" / release()
    target.mkdir(parents=True)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(home / name, target)
    for name in MODULE_FOLDERS:
        source, copy = home / "kernel" / name, target / "kernel" / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy)
        else:
            shutil.copy(source, copy)
    run("depmod", "-b", str(root), release())


def add_node_files(root: Path) -> None:
    units = root / "etc/systemd/system"
    for path in NODE.glob("*.service"):
        shutil.copy(path, units)
    for name, source in (
        ("etc/kubernetes/kubelet.yaml", "kubelet.yaml"),
        ("etc/containerd/config.toml", "containerd.toml"),
        ("etc/cni/net.d/10-pods.conflist", "pods.conflist"),
        ("sbin/job-init", "job-init"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(NODE / source, root / name)
    (root / "sbin/job-init").chmod(0o755)
    (root / "etc/fstab").write_text("")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/machine-id").write_text("")
    # The names of the network's devices stay the kernel's.
    (root / "etc/systemd/network").mkdir(exist_ok=True)
    (root / "etc/systemd/network/99-default.link").symlink_to("/dev/null")
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    for name in UNITS:
        (wants / f"{name}.service").symlink_to(f"/etc/systemd/system/{name}.service")
    for name in ("getty.target", "apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer",
                 "dpkg-db-backup.timer", "e2scrub_all.timer", "systemd-networkd.service",
                 "systemd-timesyncd.service"):  # fmt: skip
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")


def add_seawall(root: Path) -> None:
    """Program and units as the packages bring them; each runs where its file is on the job's disk
    (drop-ins in `node/`).
    """
    shutil.copytree(vm.SOURCES, root / "opt/seawall",
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    run(vm.PYTHON, "-m", "compileall", "-q", str(root / "opt/seawall"))
    program = root / "usr/bin/seawall"
    program.write_text('#!/bin/sh\nexport PYTHONPATH=/opt/seawall\n'
                       'exec /usr/bin/python3 -S -m seawall "$@"\n')  # fmt: skip
    program.chmod(0o755)
    (root / "etc/seawall").mkdir()
    units = root / "etc/systemd/system"
    for name in ("seawall-guard", "seawall-agent"):
        shutil.copy(REPOSITORY / f"packaging/{name}.service", units)
        (units / f"{name}.service.d").mkdir()
        shutil.copy(NODE / f"{name}.conf", units / f"{name}.service.d/chain.conf")
