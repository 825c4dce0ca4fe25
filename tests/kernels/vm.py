"""A whole node in QEMU: Debian's own kernel under software emulation.

Accelerators are named (``-accel tcg``), never chosen because a device opens.  The guest is
busybox, Debian's Python and the sources of seawall on a small ext4 disk made without root.
A job goes in as a tar on one disk; what it leaves under $OUT comes back on another; what
it prints is stamped with the host's clock line by line.
"""

import glob
import io
import lzma
import math
import os
import re
import select
import shutil
import stat
import struct
import subprocess
import tarfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.kernels import vm_monitor

PYTHON = "/usr/bin/python3.11"
STDLIB = Path("/usr/lib/python3.11")
SOURCES = Path(__file__).resolve().parents[2] / "src"
KERNELS = "/boot/vmlinuz-6.1*"
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox-static",
    "mke2fs": "e2fsprogs",
}
MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4", "fuse", "overlay", "zram")
LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo", "config-*")
CPU = "max,erms=off,fsrm=off"
"""An emulator copies and clears ``rep movsb`` byte by byte: without these two the kernel uses
instructions with which a copy takes it a fourth of the time, and a page fault two thirds."""
KERNEL_WORDS = "console=ttyS0 quiet loglevel=4 panic=-1 psi=1 no_timer_check"
"""Without the last a kernel on a busy host takes a late first tick for a broken timer: panic."""
RETURN_DISK_BYTES = 256 << 20
HELD = "/root/held_tracepoints.ko"
END = "=== job ended "
# Debian's kernel prints its own lines on the console too; ours begin at the start of a line.
_PATH = "/sbin:/usr/sbin:/bin:/usr/bin"
os.environ["PATH"] += ":/usr/sbin:/sbin"  # mke2fs, for ordinary users


def missing() -> str | None:
    """What keeps a VM from starting here and the command that would provide it."""
    packages = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    if not glob.glob(KERNELS):
        packages.append("linux-image-amd64")
    elif not os.access(debian_kernel(), os.R_OK):
        return f"{debian_kernel()} is not readable: run as root"
    if not os.path.exists(PYTHON):
        packages.append("python3.11")
    if packages:
        return f"a VM needs {', '.join(packages)}: apt-get install {' '.join(packages)}"
    return None


def debian_kernel() -> str:
    """The newest of the wanted version."""
    return max(glob.glob(KERNELS))


@dataclass(frozen=True)
class Image:
    """What every VM of a session boots from; its disk is never written (snapshot=on)."""

    kernel: str
    initramfs: Path
    disk: Path


@dataclass
class Outcome:
    """What a VM did: its lines as (seconds since the job's start, text), files, status."""

    lines: list[tuple[float, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    status: int | None = None
    console: str = ""
    lost_console: str = ""
    """Of a boot before this one that never ended its job; empty: there was none."""

    def at(self, text: str) -> float:
        """When a line containing ``text`` first came; fails the test with the console if never."""
        for seconds, line in self.lines:
            if text in line:
                return seconds
        pytest.fail(f"no line with {text!r} came from the VM; its console:\n{self.console[-4000:]}")

    def text(self, name: str) -> str:
        """One file that came back."""
        if name not in self.files:
            pytest.fail(f"{name} did not come back; console:\n{self.console[-4000:]}")
        return self.files[name].decode()


# --- the image -------------------------------------------------------------------------


def build_image(folder: Path, add: Callable[[Path], None] | None = None) -> Image:
    """Make kernel, initramfs and root disk ready under ``folder``; some seconds.

    ``add`` may put more into the root folder before the disk is made of it.
    """
    root = folder / "root"
    for name in ("proc", "sys", "dev", "run", "tmp", "bin", "sbin", "etc", "var/log", "root"):
        (root / name).mkdir(parents=True)
    _install_busybox(root / "bin")
    install_python(root)
    shutil.copytree(SOURCES, root / "opt/seawall", ignore=shutil.ignore_patterns("__pycache__"))
    _run(PYTHON, "-m", "compileall", "-q", "-j1", str(root / "opt/seawall"))
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (root / "etc/hostname").write_text("node-61\n")
    _program(root / "bin/seawall", f'exec {PYTHON} -m seawall "$@"')
    _program(root / "sbin/job-init", _JOB_INIT)
    if add:
        add(root)
    disk = folder / "root.ext4"
    _run("mke2fs", "-q", "-t", "ext4", "-d", str(root), "-L", "root", str(disk), "512M")
    shutil.rmtree(root)
    initramfs = folder / "initramfs.cpio"
    initramfs.write_bytes(initramfs_of(Path(debian_kernel()).name.removeprefix("vmlinuz-")))
    return Image(str(unpacked_kernel(folder)), initramfs, disk)


def unpacked_kernel(folder: Path) -> Path:
    """The kernel under its own name: to unpack itself takes it 3 s in each boot.

    QEMU enters the ELF file at its PVH note.  The header is that of
    Documentation/arch/x86/boot.rst; what is not packed with xz, as Debian's is, stays as it is.
    """
    packed, kernel = Path(debian_kernel()).read_bytes(), folder / Path(debian_kernel()).name
    offset, length = struct.unpack_from("<II", packed, 0x248)  # payload_offset, payload_length
    payload = packed[(packed[0x1F1] + 1) * 512 + offset :][:length]  # setup_sects
    if not payload.startswith(b"\xfd7zXZ\0"):
        return Path(debian_kernel())
    kernel.write_bytes(lzma.LZMADecompressor().decompress(payload))
    return kernel


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, timeout=300)


def _program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def _install_busybox(folder: Path) -> None:
    source = shutil.which("busybox")
    assert source
    shutil.copy(source, folder / "busybox")
    for applet in subprocess.check_output([source, "--list"], text=True).split():
        if applet != "busybox":
            (folder / applet).symlink_to("busybox")


def install_python(root: Path) -> None:
    """Debian's interpreter, its standard library and the shared objects that both need."""
    ignore = shutil.ignore_patterns(*LEFT_OUT)
    shutil.copytree(STDLIB, root / STDLIB.relative_to("/"), symlinks=True, ignore=ignore)
    (root / "usr/bin").mkdir()
    shutil.copy(PYTHON, root / PYTHON[1:])
    objects = [PYTHON, *map(str, STDLIB.glob("lib-dynload/*.so"))]
    listed = subprocess.run(["ldd", *objects], check=True, capture_output=True, text=True).stdout
    for library in set(re.findall(r"(/\S+\.so\S*) \(0x", listed)):
        target = root / library[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)


_JOB_INIT = f"""
export PATH={_PATH} HOME=/root OUT=/run/out JOB=/run/job PYTHONPATH=/opt/seawall TERM=dumb
hostname -F /etc/hostname
case " $(cat /proc/cmdline) " in
*" node.init=systemd "*)
    if [ $$ = 1 ]; then exec /lib/systemd/systemd --unit=job.service; fi ;;
*" node.cgroup=v1 "*|*" node.cgroup=hybrid "*)
    mount -t tmpfs -o mode=755 cgroup /sys/fs/cgroup
    for c in memory cpuset pids devices freezer blkio cpu,cpuacct; do
        mkdir /sys/fs/cgroup/$c && mount -t cgroup -o $c cgroup /sys/fs/cgroup/$c
    done
    case " $(cat /proc/cmdline) " in *" node.cgroup=hybrid "*)
        mkdir /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified ;;
    esac ;;
*)
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    echo "+memory +pids +io +cpu" > /sys/fs/cgroup/cgroup.subtree_control ;;
esac
ip link set lo up
if [ -e {HELD} ]; then insmod {HELD}; fi
cd $JOB
echo "=== job starts"
sh $JOB/job.sh
echo "{END}$?"
cd / && tar cf /dev/vdc -C $OUT . && sync
reboot -f
sleep 60
"""

_INIT = """#!/bin/sh
mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
mount -t proc proc /proc && mount -t sysfs sys /sys
for m in $(cat /modules/order); do insmod /modules/$m || echo "insmod $m failed"; done
mount -t ext4 -o noatime /dev/vda /root
mount -t tmpfs -o mode=755 run /root/run
mkdir -m 755 /root/run/job /root/run/out
tar xf /dev/vdb -C /root/run/job
for m in dev proc sys; do mount --move /$m /root/$m; done
exec switch_root /root /sbin/job-init
"""


def initramfs_of(release: str) -> bytes:
    """busybox, the modules that Debian's kernel needs for its disk, and the first program."""
    cpio = io.BytesIO()
    number = iter(range(1, 1 << 20))

    def add(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> None:
        raw = name.encode() + b"\0"
        fields = [next(number), mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(raw), 0]
        cpio.write(b"070701" + b"".join(b"%08x" % f for f in fields) + raw)
        cpio.write(b"\0" * (-cpio.tell() % 4) + data)
        cpio.write(b"\0" * (-cpio.tell() % 4))

    for folder in ("dev", "proc", "sys", "root", "bin", "sbin", "modules"):
        add(folder, stat.S_IFDIR | 0o755)
    add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
    add("init", stat.S_IFREG | 0o755, _INIT.encode())
    busybox = Path(shutil.which("busybox") or "").read_bytes()
    add("bin/busybox", stat.S_IFREG | 0o755, busybox)
    for applet in ("sh", "mount", "cat", "insmod", "mkdir", "tar", "switch_root", "echo"):
        add(f"bin/{applet}", stat.S_IFLNK | 0o777, b"busybox")
    order = _module_order(Path("/lib/modules") / release)
    for path in order:
        add(f"modules/{path.name}", stat.S_IFREG | 0o644, path.read_bytes())
    names = "\n".join(path.name for path in order)
    add("modules/order", stat.S_IFREG | 0o644, names.encode())
    add("TRAILER!!!", 0)
    return cpio.getvalue()


def _module_order(home: Path) -> list[Path]:
    """MODULES and all that they need, in an order in which insmod accepts them."""
    needs: dict[str, list[str]] = {}
    for line in (home / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        needs[path] = rest.split()
    by_name = {Path(path).name.split(".")[0].replace("-", "_"): path for path in needs}
    order: dict[str, None] = {}
    for name in MODULES:
        if name in by_name:  # else built in
            # modules.dep lists the nearest need first.
            order |= dict.fromkeys([*reversed(needs[by_name[name]]), by_name[name]])
    return [home / path for path in order]


# --- running ---------------------------------------------------------------------------


def run_job(
    image: Image,
    script: str,
    folder: Path,
    *,
    files: Mapping[str, bytes] | None = None,
    memory_mib: int = 512,
    cgroup: str = "v2",
    disk_iops: int | None = None,
    timeout_seconds: float = 240,
    kernel_words: str = "",
    swap_mib: int = 0,
    silence_seconds: float = math.inf,
) -> Outcome:
    """Boot a VM, run ``script`` as its only job, bring back lines and files.

    ``disk_iops`` holds the root disk to that many operations a second.  ``kernel_words`` stand
    in its command line; ``swap_mib`` is the size of a further, empty disk ``/dev/vdd``.

    QEMU before 8.1 can keep the old translation of an instruction that one CPU writes while
    another runs it (it did not lock the page that it translates), and runs the kernel's own
    breakpoint for ever: in every boot within seconds where tracepoints are switched under load.
    ``built_modules.hold_tracepoints`` keeps the kernel from writing there.  For what is left a VM
    that never ended its job is booted once more, with a warning; when its time is over, or its
    job said nothing for ``silence_seconds``.
    """
    job_disk, back_disk = folder / "job.tar", folder / "back.raw"
    _write_job(job_disk, {"job.sh": script.encode(), **(files or {})})
    with open(back_disk, "wb") as back:
        back.truncate(RETURN_DISK_BYTES)
    throttle = f",throttling.iops-total={disk_iops}" if disk_iops else ""
    command = [
        "qemu-system-x86_64", "-accel", "tcg,thread=multi",
        "-cpu", CPU, "-smp", "2", "-m", str(memory_mib), "-nodefaults", "-no-user-config",
        "-no-reboot", "-display", "none", "-serial", "stdio",
        "-qmp", f"unix:{folder}/monitor,server=on,wait=off",
        "-kernel", image.kernel, "-initrd", str(image.initramfs),
        "-append",
        f"{KERNEL_WORDS} node.cgroup={cgroup} {kernel_words}",
        "-drive", f"file={image.disk},if=virtio,format=raw,snapshot=on{throttle}",
        "-drive", f"file={job_disk},if=virtio,format=raw,readonly=on",
        "-drive", f"file={back_disk},if=virtio,format=raw",
    ]  # fmt: skip
    if swap_mib:
        swap = folder / "swap.raw"
        with open(swap, "wb") as empty:
            empty.truncate(swap_mib << 20)
        command += ["-drive", f"file={swap},if=virtio,format=raw,snapshot=on"]
    limits, monitor = (timeout_seconds, silence_seconds), folder / "monitor"
    outcome = _boot(command, monitor, *limits)
    if outcome.status is None:
        warnings.warn(f"a VM never ended its job and is booted again: {folder}", stacklevel=2)
        lost, outcome = outcome.console, _boot(command, monitor, *limits)
        outcome.lost_console = lost
    outcome.files = _read_back(back_disk)
    back_disk.unlink()
    return outcome


def _boot(command: list[str], monitor: Path, seconds: float, silence_seconds: float) -> Outcome:
    outcome = Outcome()
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as vm:
        try:
            _follow(vm, outcome, seconds, silence_seconds)
            if outcome.status is None and vm.poll() is None:
                outcome.console += "\n" + "\n".join(vm_monitor.places(monitor))
        finally:
            vm.kill()
    return outcome


def _write_job(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755
            archive.addfile(member, io.BytesIO(data))
    os.truncate(path, -(-path.stat().st_size // 512) * 512)


def _is_lockup(line: str) -> bool:
    """A first notice (after some 22 s) may be a slow host; the second is not."""
    stuck = re.search(r"BUG: soft lockup - CPU#\d+ stuck for (\d+)s", line)
    return stuck is not None and int(stuck[1]) > 40


def _follow(
    vm: subprocess.Popen[bytes], outcome: Outcome, timeout_seconds: float, silence_seconds: float
) -> None:
    """Stamp every line of the console until the VM ends, is silent or its time is over."""
    assert vm.stdout
    until = time.monotonic() + timeout_seconds
    poll = select.poll()
    poll.register(vm.stdout.fileno(), select.POLLIN | select.POLLHUP)
    began, rest, console = time.monotonic(), b"", []
    while (left := until - time.monotonic()) > 0:
        if not poll.poll(min(left, silence_seconds) * 1000):
            break
        data = os.read(vm.stdout.fileno(), 65536)
        if not data:
            break
        now = time.monotonic()
        *whole, rest = (rest + data).split(b"\n")
        for raw in whole:
            line = raw.rstrip(b"\r").decode("utf-8", "replace")
            console.append(f"{now - began:7.2f} {line}")
            if line == "=== job starts":
                began = now
            outcome.lines.append((now - began, line))
            if line.startswith(END):
                outcome.status = int(line.removeprefix(END).strip() or -1)
            if _is_lockup(line):
                until = now  # the second notice: it will not end
    outcome.console = "\n".join(console)


def _read_back(path: Path) -> dict[str, bytes]:
    """The files of the tar that the guest wrote onto its third disk; none if it never did."""
    files = {}
    try:
        with tarfile.open(path, "r:") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content:
                    files[member.name.removeprefix("./")] = content.read()
    except tarfile.ReadError:
        pass
    return files
