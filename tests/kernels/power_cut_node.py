"""A node in QEMU whose further disks have volatile caches, and that is killed without a word.

``Node`` boots it and stamps each line of its console with this host's clock; ``files_of`` reads
files back from what a power cut left, on this host, with nothing mounted: e2fsck replays the
journal as a mount would, debugfs takes the files out.
"""

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kernels import vm
from tests.kernels.volatile_disk import VolatileDisk

from seawall.proc.parent_death import die_with_parent

DISK_MIB = 24
CORRECTED_MOST = 1
"""e2fsck: 0 clean, 1 corrected; more: damage that an ordered journal never leaves."""
NICE = ["nice", "-n", os.environ.get("SEAWALL_VM_NICE", "0")]


def empty_ext4(folder: Path) -> bytes:
    """A file system with what mke2fs gives by default, its tables written in full."""
    path = folder / "empty.ext4"
    subprocess.run(
        ["mke2fs", "-q", "-t", "ext4", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0",
         "-J", "size=4", str(path), f"{DISK_MIB}M"], check=True, timeout=60,
    )  # fmt: skip
    return path.read_bytes()


class Node:
    """Runs until ``kill``; the console is followed by a thread of its own."""

    cpus = 2
    takes_input = False
    """Its console is also its keyboard (``type_line``)."""
    is_own_session = False
    """A scheduling group of its own (sched_autogroup), that ends with the process that made it; for
    who makes it in its main thread.
    """

    def __init__(
        self, image: vm.Image, folder: Path, job: str, disks: Sequence[VolatileDisk],
        *, files: Mapping[str, bytes], memory_mib: int = 512, root_iops: int | None = None,
        options: Sequence[str] = (), keeps_disk: bool = False,
    ) -> None:  # fmt: skip
        """``options``: more of QEMU's; a drive among them is the first behind ``disks``.
        ``keeps_disk``: what it writes stays in the image's disk.
        """
        self.lines: list[tuple[float, str]] = []
        """Stamps are this host's monotonic clock, after the line was read."""
        vm._write_job(folder / "job.tar", {"job.sh": job.encode(), **files})
        with open(folder / "back.raw", "wb") as back:
            back.truncate(1 << 20)
        snapshot = "off" if keeps_disk else "on"
        throttle = f",throttling.iops-total={root_iops}" if root_iops else ""
        command = [
            *NICE, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", vm.CPU,
            "-smp", str(self.cpus), "-m", str(memory_mib),
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio",
            "-kernel", image.kernel, "-initrd", str(image.initramfs),
            "-append", f"{vm.KERNEL_WORDS} node.cgroup=v2",
            "-drive", f"file={image.disk},if=virtio,format=raw,snapshot={snapshot}{throttle}",
            "-drive", f"file={folder / 'job.tar'},if=virtio,format=raw,readonly=on",
            "-drive", f"file={folder / 'back.raw'},if=virtio,format=raw",
        ]  # fmt: skip
        for disk in disks:
            # No cache of this host's, and a write cache that the guest sees and has to flush.
            command += ["-drive", f"file=nbd:unix:{disk.path},if=virtio,format=raw,cache=none"]
        parent = os.getpid()
        self._vm = subprocess.Popen(
            [*command, *options],
            stdin=subprocess.PIPE if self.takes_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=self.is_own_session,
            preexec_fn=(lambda: die_with_parent(parent)) if self.is_own_session else None,  # noqa: PLW1509
        )
        self._said = folder / "console"
        """To look at while it runs."""
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Node":  # noqa: PYI034 - typing.Self is of Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> float:
        """SIGKILL; when it was sent.  All that the guest had said by then is in ``lines``."""
        at = time.monotonic()
        self._vm.kill()
        self._vm.wait()
        self._reader.join(10)
        return at

    def type_line(self, line: str) -> None:
        """Where it ``takes_input``."""
        assert self._vm.stdin
        self._vm.stdin.write(line.encode() + b"\n")
        self._vm.stdin.flush()

    def wait_for(self, text: str, seconds: float) -> float:
        """The stamp of the first line that has ``text``; TimeoutError with the console's end."""
        until, seen = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            for stamp, line in self.lines[seen:]:
                seen += 1
                if text in line:
                    return stamp
            if self._vm.poll() is not None:
                break
            time.sleep(0.02)
        raise TimeoutError(f"no {text!r} within {seconds:.0f} s\n{self.console[-3000:]}")

    @property
    def has_ended(self) -> bool:
        """QEMU is gone: it panicked, or shut down."""
        return self._vm.poll() is not None

    def stamp_of(self, text: str) -> float | None:
        """Of the first line so far that has ``text``; None: there is none."""
        return next((stamp for stamp, line in list(self.lines) if text in line), None)

    @property
    def console(self) -> str:
        return "\n".join(line for _, line in self.lines)

    def _follow(self) -> None:
        assert self._vm.stdout
        rest = b""
        while data := os.read(self._vm.stdout.fileno(), 65536):
            with open(self._said, "ab") as said:
                said.write(data)
            *whole, rest = (rest + data).split(b"\n")
            now = time.monotonic()
            self.lines += [(now, raw.strip(b"\r").decode(errors="replace")) for raw in whole]


class DamagedFileSystem(AssertionError):
    """What the cut left is no file system any more: a sector of its superblock is another's."""


def files_of(image: bytes, names: Sequence[str], folder: Path) -> dict[str, Path]:
    """Those of ``names`` that are there; DamagedFileSystem."""
    disk = folder / "cut.ext4"
    disk.write_bytes(image)
    checked = subprocess.run(
        ["e2fsck", "-f", "-y", str(disk)], capture_output=True, text=True, timeout=60, check=False
    )
    if checked.returncode > CORRECTED_MOST:
        raise DamagedFileSystem(checked.stdout + checked.stderr)
    found = {}
    for name in names:
        target = folder / name.rsplit("/", 1)[-1]
        target.unlink(missing_ok=True)
        subprocess.run(
            ["debugfs", "-R", f"dump {name} {target}", str(disk)], capture_output=True,
            timeout=60, check=False,
        )  # fmt: skip
        if target.exists() and target.stat().st_size:
            found[name] = target
    return found
