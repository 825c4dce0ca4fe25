# SPDX-License-Identifier: Apache-2.0
"""A machine asked while it runs, or a tree that looks like one (``--root``)."""

import errno
import json
import math
import os
import stat
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from seawall.host.blocking import KERNEL_LOG, VITAL_PATHS, deadline_seconds
from seawall.host.expendable import LAPSE_SECONDS, Expendable, unread_for
from seawall.host.host import HERE_ONLY, JSON, READ_LIMIT_BYTES, Unread
from seawall.host.probes import RESIDENCY_PROBES, ask_live
from seawall.host.sieve import is_sieved, sieve_for
from seawall.host.slow_probes import OF_TREES, SLOW_PROBES, answer_of
from seawall.host.watchdog import Slot
from seawall.proc.serving_child import ServingChild

if TYPE_CHECKING:
    from seawall.host.background_question import BackgroundQuestion
    from seawall.host.residency_asking import ResidencyAsker

_CHUNK_BYTES: Final = 64 << 10
# NONBLOCK: a FIFO planted where a file is expected must not hold us.
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_PROC_ROOT_INODE: Final = 1  # fs/proc/root.c PROC_ROOT_INO, since 2.6
_PROBE: Final = "\0ask "  # no path begins so: a probe's question to the reading child
_OVER: Final = "the time given by --timeout was over"
_SMALL_BYTES: Final = 4 << 10
_CLOCK_EVERY: Final = 64  # files of read_each between two looks at the clock
_MANY: Final = 1024  # files: below this a second reader's fork costs more than it brings


class LiveHost:
    """Serves ``/``, ``/host`` in a DaemonSet, or an unpacked report of another machine.

    until: the monotonic second after which every question answers ``not_reached``; who has none
           asks for weeks, and reads that were lost lapse for it.
    slot:  where the open question is noted, for whoever must say where it hung.
    reader: the child that reads what may hang, where it has other work too; None: one for this.
    """

    def __init__(
        self, root: str = "/", *, with_cmdline: bool = False, until: float | None = None,
        slot: Slot | None = None, reader: ServingChild | None = None,
    ) -> None:  # fmt: skip
        self.root = root
        self._with_cmdline = with_cmdline
        self._until = until
        self._rooted = None
        if os.path.realpath(root) != "/":
            from seawall.host.rooted import Rooted  # noqa: PLC0415 - ctypes costs start-up

            self._rooted = Rooted(root)
        self.is_live = self._rooted is None or self._has_procfs()
        """False for a tree of files: the machine they came from is not this one."""
        lapse_seconds = LAPSE_SECONDS if until is None else math.inf
        self._expendable = Expendable(self.read_sieved, self._kept, lapse_seconds, reader)
        self._residency: ResidencyAsker | None = None
        self._slot = slot or Slot()

    def seconds_left(self) -> float:
        """Until questions are answered ``not_reached``; infinite without a deadline."""
        return float("inf") if self._until is None else max(0.0, self._until - time.monotonic())

    def _kept(self) -> tuple[int, ...]:
        return (self._rooted.fd,) if self._rooted else ()

    def _is_over(self) -> bool:
        return self._until is not None and time.monotonic() > self._until

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> bytes | Unread:
        if self._is_over() and path not in VITAL_PATHS:
            return Unread(path, "not_reached", _OVER)
        wait = deadline_seconds(path)
        if wait is not None and self.is_live:
            return self._expendable.read(path, limit_bytes, wait)
        if path == KERNEL_LOG:
            return Unread(path, "absent", "a tree of files holds no log of a kernel that runs")
        self._slot.write(path)
        try:
            if not self.is_live and not stat.S_ISREG(self._status(path).st_mode):
                return Unread(path, "malformed", "no regular file, in a tree of files")
            return self.read_sieved(path, limit_bytes)
        except OSError as error:
            return unread_for(path, error.errno or errno.EIO)
        except ValueError:  # a NUL, or a character that no file name can have
            return unread_for(path, errno.EINVAL)
        finally:
            self._slot.clear()

    def read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        """What ``read`` answers for each, without its calls: thousands of processes pass here."""
        if len(paths) >= _MANY and self._rooted is None:
            from seawall.host.second_reader import are_stats, read_stats  # noqa: PLC0415 - rare

            if are_stats(paths):
                left = iter(paths)
                for data in read_stats(paths, self._is_over):
                    path = next(left)
                    yield data if isinstance(data, bytes) else unread_for(path, data)
                paths = list(left)
        yield from self._read_each(paths)

    def _read_each(self, paths: Sequence[str]) -> Iterator[bytes | Unread]:
        until = math.inf if self._until is None else self._until
        for number, path in enumerate(paths):
            if number % _CLOCK_EVERY == 0 and time.monotonic() > until:
                yield from map(self.read, paths[number:])
                return
            if self._rooted is not None or not _is_plain(path):
                yield self.read(path)
                continue
            self._slot.write(path)
            try:
                fd = os.open(path, _FLAGS)
                try:
                    if data := os.read(fd, _SMALL_BYTES):
                        data = self._read_rest(fd, data, READ_LIMIT_BYTES)
                finally:
                    os.close(fd)
            except OSError as error:
                yield unread_for(path, error.errno or errno.EIO)
            except ValueError:
                yield unread_for(path, errno.EINVAL)
            else:
                yield data
        self._slot.clear()

    def names(self, path: str) -> tuple[str, ...] | Unread:
        if self._is_over():
            return Unread(path, "not_reached", _OVER)
        wait = deadline_seconds(path)
        if wait is not None and self.is_live:
            listed = self._expendable.read("\0names" + path, READ_LIMIT_BYTES, wait)
            if isinstance(listed, Unread):
                return Unread(path, listed.why, listed.detail)
            return tuple(os.fsdecode(listed).split("\0")) if listed else ()
        self._slot.write(path)
        try:
            return self._list(path)
        except OSError as error:
            return unread_for(path, error.errno or errno.EIO)
        except ValueError:
            return unread_for(path, errno.EINVAL)
        finally:
            self._slot.clear()

    def link(self, path: str) -> str | Unread:
        try:
            if self._rooted is None:
                return os.readlink(path)
            fd = self._rooted.open(path, os.O_PATH | os.O_NOFOLLOW)
            try:
                return os.readlink("", dir_fd=fd)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return Unread(path, "absent", "not a link")
            return unread_for(path, error.errno or errno.EIO)
        except ValueError:
            return unread_for(path, errno.EINVAL)

    def ask(self, probe: str, argument: str = "") -> JSON | Unread:
        if probe == "inode":
            return self._inode(argument)
        if probe in SLOW_PROBES:
            return self._ask_slow(probe, argument)
        if probe in RESIDENCY_PROBES:
            return self._ask_residency(probe, argument)
        is_here = self.is_live or probe == "reader"
        return ask_live(probe) if is_here else self._ask_tree(probe)

    def _ask_slow(self, probe: str, argument: str) -> JSON | Unread:
        """By an expendable child; only here, for pids elsewhere may be of another namespace."""
        if self._rooted is not None and probe not in OF_TREES:
            return Unread(probe, "absent", HERE_ONLY)
        question = f"{_PROBE}{probe} {argument}"
        wait = SLOW_PROBES[probe].deadline_seconds
        answer = self._expendable.read(question, READ_LIMIT_BYTES, wait)
        if not isinstance(answer, Unread):
            told: JSON = json.loads(answer)
            return told
        words = "a process did not let go" if answer.why == "no_answer" else answer.detail
        return Unread(probe, answer.why, words)

    def ask_beside(
        self, probe: str, argument: str, deadline_seconds: float
    ) -> "BackgroundQuestion":
        """The same by a child of its own, which is waited for when its answer is wanted."""
        from seawall.host.background_question import BackgroundQuestion  # noqa: PLC0415 - one verb needs it

        rooted = self._rooted
        return BackgroundQuestion(
            probe, lambda: answer_of(probe, argument, rooted), deadline_seconds, self._kept()
        )

    def _ask_residency(self, probe: str, argument: str) -> JSON | Unread:
        if not self.is_live:
            return Unread(probe, "not_captured", "files of a tree tell nothing of a page cache")
        if self._residency is None:
            from seawall.host.residency_asking import ResidencyAsker  # noqa: PLC0415 - rare

            root = "" if self._rooted is None else os.path.realpath(self.root)
            self._residency = ResidencyAsker(self._enter, self._kept, self.seconds_left, root)
        return self._residency.ask(probe, argument)

    def ask_disk_again(self) -> None:
        """Whoever has waited for the disk itself: its lost reads do not count any more."""
        self._expendable.losses.pop("disk", None)

    def close(self) -> None:
        """End the reading children."""
        self._expendable.close()
        if self._residency is not None:
            self._residency.close()

    def _enter(self, path: str, flags: int) -> int:
        """As ``_open``, but magic links of the host's procfs are followed: in a child only."""
        if self._rooted is not None and path.startswith("/proc/"):
            return os.open(self.root.rstrip("/") + path, flags)
        return self._open(path, flags)

    def _open(self, path: str, flags: int = _FLAGS) -> int:
        return self._rooted.open(path, flags) if self._rooted else os.open(path, flags)

    def read_sieved(self, path: str, limit_bytes: int) -> bytes:
        """The file's content after the sieve; OSError, EFBIG for one over the limit."""
        if path.startswith(_PROBE):
            probe, _, argument = path[len(_PROBE) :].partition(" ")
            return json.dumps(answer_of(probe, argument, self._rooted)).encode()
        if path.startswith("\0names"):
            return os.fsencode("\0".join(self._list(path[6:])))
        fd = self._open(path)
        try:
            if path == KERNEL_LOG:
                from seawall.host.kmsg import read_records  # noqa: PLC0415 - few verbs read it

                data = read_records(fd)
            elif data := os.read(fd, _CHUNK_BYTES):
                data = self._read_rest(fd, data, limit_bytes)
        finally:
            os.close(fd)
        if is_sieved(path):
            sieve = sieve_for(path, with_cmdline=self._with_cmdline)
            return sieve(data) if sieve else data
        return data

    @staticmethod
    def _read_rest(fd: int, first: bytes, limit_bytes: int) -> bytes:
        """Files of procfs have no size; the end is where a read gives nothing."""
        more = os.read(fd, _CHUNK_BYTES)
        if not more:
            return first
        parts = [first, more]
        size = len(first) + len(more)
        while size <= limit_bytes and (more := os.read(fd, 1 << 20)):
            parts.append(more)
            size += len(more)
        if size > limit_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        return b"".join(parts)

    def _list(self, path: str) -> tuple[str, ...]:
        fd = self._open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with os.scandir(fd) as entries:
                return tuple(
                    sorted(
                        entry.name + "/" if entry.is_dir(follow_symlinks=False) else entry.name
                        for entry in entries
                    )
                )
        finally:
            os.close(fd)

    def _has_procfs(self) -> bool:
        """Whether this root's /proc is mounted procfs rather than a folder of copies."""
        return isinstance(proc := self._inode("/proc"), dict) and proc["inode"] == _PROC_ROOT_INODE

    def _status(self, path: str) -> os.stat_result:
        fd = self._open(path, os.O_PATH)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def written_seconds(self, path: str) -> float | None:
        """When a file was last written; None where it is not there."""
        try:
            return self._status(path).st_mtime
        except (OSError, ValueError):
            return None

    def _inode(self, path: str) -> JSON | Unread:
        try:
            status = self._status(path)
        except OSError as error:
            return unread_for(path, error.errno or errno.EIO)
        return {"device": status.st_dev, "inode": status.st_ino}

    def _ask_tree(self, probe: str) -> JSON | Unread:
        """A tree of files knows when it was written, and nothing else that is no file."""
        if probe == "now":
            for path in ("/proc/uptime", "/proc/meminfo", "/"):
                try:
                    written = self._status(path)
                except OSError:
                    continue
                if stat.S_ISREG(written.st_mode) or path == "/":
                    return {"unix_seconds": written.st_mtime, "monotonic_seconds": 0.0}
        return Unread(probe, "not_captured", "a tree of files does not tell")


def _is_plain(path: str) -> bool:
    """Whether a file is read directly and kept as it stands: no deadline, no sieve."""
    return not is_sieved(path) and deadline_seconds(path) is None
