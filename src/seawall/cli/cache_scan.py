# SPDX-License-Identifier: Apache-2.0
"""The scan of ``seawall cache``: which files, how much of each, who uses them.

Everything is asked through the host, file by file with deadlines; when ``--timeout`` is over
the scan ends with what it has and says what it did not reach.
"""

import os
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.cache.page_cache import CacheFile, CacheTable
from seawall.accounts.workloads import Workload, Workloads
from seawall.cli.progress import ProgressLine
from seawall.host.host import Host, Unread
from seawall.host.live import LiveHost
from seawall.problems import UsageProblem
from seawall.readings import mountinfo
from seawall.readings.kernel import Kernel
from seawall.readings.node_daemons import NEEDED
from seawall.readings.process import Processes
from seawall.readings.process_files import FileUse, FileUses
from seawall.readings.residency import FilePages, measure, measure_each, walk
from seawall.sources.source import Source
from seawall.words import count

BATCH: Final = 64
SLICE_SECONDS: Final = 0.25
_CODE_OF: Final = NEEDED | {"systemd", "systemd-udevd", "systemd-logind", "dbus-daemon"}
_CODE_BEGINS: Final = "containerd-shim"
_WALKED: Final = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "erofs", "squashfs", "vfat", "bcachefs",
     "tmpfs", "ramfs", "virtiofs", "9p", "jfs", "reiserfs"}
)  # fmt: skip
"""Not overlayfs, whose layers lie in these; not FUSE and network filesystems, which may hang."""


class CacheScan:
    """One run.  ``table`` fills; ``unread`` tells what did not."""

    def __init__(self, source: Source, live: LiveHost, progress: ProgressLine, keep: int) -> None:
        self._host: Host = source.first.host
        self._live = live
        self._progress = progress
        self._keep = keep
        kernel = source.first.get(Kernel)
        page = None if isinstance(kernel, Unread) else kernel.page_size
        if page is None:
            raise UsageProblem("the page size of this machine could not be read")
        found = source.first.get(Workloads)
        self._by_pid = {} if isinstance(found, Unread) else found.by_pid
        self._processes = source.first.get(Processes)
        self.table = CacheTable(page, self._workload_of, self._system_pids(), keep=keep)
        self.unread: list[Unread] = []
        self._ways: dict[tuple[int, int], list[str]] = {}
        self.mounts: list[str] = []
        """Mount points that were met on a walk and not entered."""

    def _workload_of(self, pid: int) -> str | None:
        owner = self._by_pid.get(pid)
        return owner.name if owner else None

    def _system_pids(self) -> frozenset[int]:
        """The host's daemons, pid 1 and ourselves; one of that name in a container is none."""
        # Through another root, pids may be of another namespace than ours.
        own = {os.getpid()} if self._live.root == "/" else set()
        if isinstance(self._processes, Unread):
            return frozenset(own)
        named = {
            pid for pid, process in self._processes.by_pid.items()
            if pid == 1 or process.comm in _CODE_OF or process.comm.startswith(_CODE_BEGINS)
        }  # fmt: skip
        ours = {pid for pid in named if not self._is_tenants(pid)}
        return frozenset(ours | own)

    def _is_tenants(self, pid: int) -> bool:
        owner = self._by_pid.get(pid)
        return owner is not None and owner.is_tenant

    def all_pids(self) -> list[int]:
        """Every process with an address space of its own."""
        if isinstance(self._processes, Unread):
            self.unread.append(self._processes)
            return []
        return [p.pid for p in self._processes.by_pid.values()
                if not p.is_kernel_thread and p.state != "Z"]  # fmt: skip

    def pids_of(self, workload: Workload) -> list[int]:
        """The processes in it and below it."""
        below = workload.cgroup.rstrip("/") + "/"
        return [
            pid for pid, owner in self._by_pid.items()
            if owner.cgroup == workload.cgroup or owner.cgroup.startswith(below)
        ]  # fmt: skip

    def of_processes(self, pids: Sequence[int]) -> None:
        """The files that these map or have open; then who else uses them."""
        uses = self._uses_of(pids)
        for batch, answers in self._measured(uses.files):
            self.table.add_uses(batch, answers)
            for use, answer in zip(batch, answers, strict=True):
                if isinstance(answer, FilePages):
                    self._ways[answer.device, answer.inode] = use.ways
        rest = set(self.all_pids()) - set(pids)
        if rest:
            self.find_users(sorted(rest))

    def find_users(self, pids: Sequence[int]) -> None:
        """Which of ``pids`` use the files of the table; only those worth a look are asked."""
        names = {file.path for file in self.table.files.values()}
        inodes = {file.inode for file in self.table.files.values()}
        uses = [u for u in self._uses_of(pids).files if u.inode in inodes or u.name in names]
        for batch, answers in self._measured(uses):
            self.table.join_workloads(batch, answers)

    def ways_to(self, file: CacheFile) -> list[str]:
        """Paths that open it: through its processes, for its own path is theirs; else that."""
        return self._ways.get((file.device, file.inode)) or [file.path]

    def _uses_of(self, pids: Sequence[int]) -> FileUses:
        uses = FileUses()
        for number, pid in enumerate(pids):
            if self._is_over("processes", len(pids) - number, f"pid {pid}"):
                break
            uses.look_at(self._host, pid)
            self._progress.tell(f"{count(number)} of {count(len(pids))} processes asked")
        self.unread += uses.unread
        return uses

    def _measured(
        self, uses: Sequence[FileUse]
    ) -> Iterator[tuple[Sequence[FileUse], list[FilePages | Unread]]]:
        for at in range(0, len(uses), BATCH):
            batch = uses[at : at + BATCH]
            if self._is_over("files", len(uses) - at, batch[0].name):
                return
            yield batch, measure_each(self._host, [use.item() for use in batch])
            self._progress.tell(f"{count(at)} of {count(len(uses))} files asked")

    def is_path(self, path: str) -> bool:
        """Whether something is there, even if it does not answer; cgroups are workloads."""
        if path.startswith("/sys/fs/cgroup/"):
            return False
        found = measure(self._host, path)
        return not (isinstance(found, Unread) and found.why == "absent")

    def of_paths(self, paths: Sequence[str]) -> None:
        """Files, and folders with what is below them."""
        for path in paths:
            found = measure(self._host, path)
            if isinstance(found, Unread):
                if found.why == "absent":
                    raise UsageProblem(f"{path}: {found.detail}")
                self.unread.append(found)
            elif found.kind == "folder":
                self.walk(found.path)
            elif found.kind == "special":
                raise UsageProblem(f"{path}: neither a file nor a folder")
            else:
                self.table.add_pages(found, path)

    def of_mounts(self) -> None:
        """Every disk and tmpfs, each once: what the processes have not shown."""
        mounts = mountinfo.read(self._host)
        if isinstance(mounts, Unread):
            self.unread.append(mounts)
            return
        seen: set[str] = set()
        for mount in sorted(mounts.mounts, key=lambda m: (len(m.root), len(m.mount_point))):
            if mount.fs_type in _WALKED and mount.device not in seen:
                seen.add(mount.device)
                self.walk(mount.mount_point)
        self.mounts = [
            m.mount_point for m in mounts.mounts
            if m.fs_type.startswith(("nfs", "cifs", "ceph", "fuse", "lustre"))
        ]  # fmt: skip

    def walk(self, folder: str) -> None:
        """A folder, slice by slice; mount points below it are noted and not entered."""
        rest, inside = [folder], ""
        request = {
            "seconds": SLICE_SECONDS, "keep": self._keep,
            "seen": [list(key) for key in self.table.files],
        }  # fmt: skip
        while rest or inside:
            if self._is_over("folders", len(rest) + bool(inside), inside or rest[-1]):
                return
            at = None if inside else rest.pop()
            asked = {**request, "folder": at, "above": self.table.above_pages}
            part = walk(self._host, asked)
            request.pop("seen", None)
            if isinstance(part, Unread):
                where = at or inside
                words = f"what lies in it was not counted: {part.detail}"
                self.unread.append(Unread(where, part.why, words))
                inside = ""
                continue
            inside = part.at if part.goes_on else ""
            rest += part.rest
            self.mounts += part.mounts
            self.table.add_slice(part)
            now = inside or (rest or [folder])[-1]
            self._progress.tell(f"{count(self.table.totals.files)} files, now in {now}")

    def _is_over(self, what: str, left: int, first: str) -> bool:
        """Whether ``--timeout`` is over; then what was not reached is noted."""
        if self._live.seconds_left() > 0:
            return False
        words = f"{count(left)} {what} were not reached, this and what comes after it"
        self.unread.append(Unread(first, "not_reached", words))
        return True
