# SPDX-License-Identifier: Apache-2.0
"""Which processes have files of drivers open: device nodes and dma-bufs.

A device node is judged by its number, never by its name: /proc/devices tells whose major it
is, /proc/misc whose minor of major 10 (proc(5)).  dma-bufs: a file system of their own since
5.3, one shared anonymous inode before.  One pass, in the expendable child.
"""

import json
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from errno import EACCES, ENOENT, EPERM, ESRCH, ETIME
from typing import Final

from seawall.host.descriptor_turns import DescriptorTurns
from seawall.host.descriptor_walk import FileWalker, OpenFile, OverTimeError, start_ticks
from seawall.host.host import JSON
from seawall.host.second_reader import read_halves

_BUDGET_SECONDS: Final = 0.6
_DESCRIPTORS_KEPT: Final = 64  # of one device in one process; the number of all is told
_DMABUFS_MOST: Final = 65536
_MISC_MAJOR: Final = 10
_OWN_FILE_SYSTEM: Final = (5, 3)
# Character devices of the kernel itself, or whose drivers keep no memory to speak of.
_ORDINARY: Final = frozenset(
    {
        "mem", "tty", "/dev/tty", "/dev/console", "/dev/ptmx", "/dev/vc/0", "vcs", "ptm", "pts",
        "ttyS", "ttyAMA", "ttyUSB", "ttyACM", "ttyprintk", "hvc", "hvsi", "console", "input",
        "lp", "ppp", "ppdev", "sg", "st", "bsg", "raw", "rtc", "tpm", "hidraw", "hid", "usb",
        "usb_device", "usbmon", "watchdog", "ptp", "pps", "i2c", "spi", "gpiochip", "ipmidev",
        "cpu/cpuid", "cpu/msr", "cpu/microcode", "macvtap", "ipvtap", "mei", "nvme",
        "nvme-generic", "ng", "dimmctl", "ndctl", "dax", "auxiliary", "cec", "lirc", "aux",
        "virtio-portsdev", "xen", "vhost-vdpa", "rpmb", "ttyMAX", "uio", "fb", "alsa", "media",
        "wwan", "wwan_port", "binder", "iio", "remoteproc", "drm_dp_aux_dev",
    }
)  # fmt: skip
_MISC_ORDINARY: Final = frozenset(
    {
        "autofs", "btrfs-control", "cachefiles", "cpu_dma_latency", "cuse", "device-mapper",
        "dlm-control", "dlm-monitor", "dlm_plock", "ecryptfs", "fuse", "hpet", "hw_random",
        "hwrng", "lightnvm", "loop-control", "mcelog", "memory_bandwidth", "microcode",
        "network_latency", "network_throughput", "ntsync", "nvme-fabrics", "nvram", "psaux",
        "rfkill", "rtc", "sev", "sev-guest", "sgx_enclave", "sgx_provision", "sgx_vepc",
        "snapshot", "tdx_guest", "tpm0", "tun", "ubi_ctrl", "uhid", "uinput", "userfaultfd",
        "userio", "vboxguest", "vboxuser", "vga_arbiter", "vhost-net", "vhost-scsi",
        "vhost-vsock", "vmci", "vsock", "watchdog", "xen!evtchn", "xen!gntdev", "xen!privcmd",
        "zfs", "agpgart", "apm_bios", "mei", "mwave", "ipmi", "hyperv", "vcs", "net/tun",
    }
)  # fmt: skip


_TURNS: Final = DescriptorTurns()


class DeviceNames:
    """Whose device a number is."""

    def __init__(self) -> None:
        self._majors = _numbered("/proc/devices")
        self._minors = _numbered("/proc/misc")

    def driver(self, rdev: tuple[int, int]) -> str | None:
        """The name the driver registered, ``misc:NAME`` for major 10; None for ordinary ones."""
        major, minor = rdev
        if major == _MISC_MAJOR:
            name = self._minors.get(minor, f"minor {minor}")
            return None if name in _MISC_ORDINARY else f"misc:{name}"
        name = self._majors.get(major, f"major {major}")
        return None if name in _ORDINARY or name.startswith(("tty", "cpu/")) else name


def driver_files() -> JSON:
    """{"processes": [{"pid", "start_ticks", "devices", "dmabufs"}], "left_out"}.

    ``devices``: [driver, major, minor, descriptors, [descriptor, ...]]; ``dmabufs``: [inode,
    descriptor], the inode 0 where all have one; ``left_out``: processes not asked, for lack of
    time or permission.
    """
    teller = _Teller(time.monotonic() + _BUDGET_SECONDS)
    pids = _TURNS.order(sorted(int(name) for name in os.listdir("/proc") if name.isdecimal()))
    processes: list[JSON] = []
    left_out = asked = 0
    for pid, answer in zip(
        pids, read_halves([str(pid) for pid in pids], teller.tell), strict=False
    ):
        asked += 1
        if isinstance(answer, bytes):
            _TURNS.note(pid, 0)
            processes += [json.loads(answer)] if answer else []
        elif answer in (ETIME, EPERM, EACCES):
            left_out += 1
        elif answer not in (ENOENT, ESRCH):
            raise OSError(answer, os.strerror(answer))
    return {"processes": processes, "left_out": left_out + len(pids) - asked}


class _Teller:
    """Tells of one process after the other."""

    def __init__(self, until: float) -> None:
        self._look = FileWalker(until)
        self._sort = _Sorter()

    def tell(self, pid: str) -> bytes:
        """Its row as JSON, empty when there is nothing to tell; OSError, ETIME when the time
        is over.
        """
        try:
            row = self._sort.row(int(pid), self._look.files_of(int(pid)))
            if not row:
                return b""
            return json.dumps({"start_ticks": start_ticks(int(pid)), **row}).encode()
        except OverTimeError:
            raise OSError(ETIME, os.strerror(ETIME)) from None
        except (ValueError, IndexError):  # half of its stat: it is ending
            raise OSError(ESRCH, os.strerror(ESRCH)) from None


class _Sorter:
    """Picks from a process's files what is told."""

    def __init__(self) -> None:
        self._names = DeviceNames()
        self._is_dmabuf: dict[tuple[int, int], bool] = {}
        self._has_one_inode = _release() < _OWN_FILE_SYSTEM
        self._dmabufs = 0

    def row(self, pid: int, files: Iterable[OpenFile]) -> dict[str, JSON]:
        """Empty when there is nothing to tell."""
        devices: dict[tuple[int, int], list[int]] = {}
        dmabufs: dict[tuple[int, int], int] = {}
        for file in files:
            if file.kind == stat.S_IFCHR:
                devices.setdefault(file.rdev, []).append(file.fd)
            elif file.kind in (0, stat.S_IFREG) and file.device[0] == 0:
                inode = self._dmabuf_inode(pid, file)
                if inode is not None and self._dmabufs < _DMABUFS_MOST:
                    dmabufs.setdefault((inode, 0 if inode else file.fd), file.fd)
        told: list[JSON] = [
            [driver, *rdev, len(fds), list[JSON](fds[:_DESCRIPTORS_KEPT])]
            for rdev, fds in devices.items()
            if (driver := self._names.driver(rdev)) is not None
        ]
        self._dmabufs += len(dmabufs)
        if not (told or dmabufs):
            return {}
        return {
            "pid": pid, "devices": told,
            "dmabufs": [[inode, fd] for (inode, _), fd in dmabufs.items()],
        }  # fmt: skip

    def _dmabuf_inode(self, pid: int, file: OpenFile) -> int | None:
        """None for anything else; a name alone proves nothing, so fdinfo is asked once."""
        known = self._is_dmabuf.get(file.device)
        if known is not None:
            return file.inode if known else None
        try:
            is_one = _has_dmabuf_info(pid, file.fd)
            shares = os.readlink(f"/proc/{pid}/fd/{file.fd}").startswith("anon_inode:")
        except OSError:  # closed since
            return None
        if shares and self._has_one_inode:
            return 0 if is_one else None  # the next one of this inode may be something else
        self._is_dmabuf[file.device] = is_one
        return file.inode if is_one else None


def _has_dmabuf_info(pid: int, fd: int) -> bool:
    """Whether fdinfo has ``exp_name``, as a dma-buf's alone has: dma_buf_show_fdinfo in
    drivers/dma-buf/dma-buf.c.
    """
    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as info:
        return b"\nexp_name:\t" in info.read(4096)


def _numbered(path: str) -> dict[int, str]:
    """The names of ``NUMBER NAME`` lines, up to those of block devices; the first of each."""
    found: dict[int, str] = {}
    with suppress(OSError), open(path, "rb") as file:
        for line in file.read().partition(b"Block devices:")[0].split(b"\n"):
            number, _, name = line.strip().partition(b" ")
            if number.isdigit():
                found.setdefault(int(number), name.decode("ascii", "backslashreplace"))
    return found


def _release() -> tuple[int, ...]:
    major, _, rest = os.uname().release.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else _OWN_FILE_SYSTEM
