# SPDX-License-Identifier: Apache-2.0
"""The recorder as a process of its own, started by the guard's launcher: ``python -I -S``.

Everything is imported, opened and done once before it says ``hello``; then its memory is locked.
It ends with the guard: prctl(2) PR_SET_PDEATHSIG, and the end of the channel; what waits is
written before that, unless the disk does not take it.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seawall import own_process, resident_files
from seawall.companion import settle
from seawall.host.host import JSON
from seawall.proc import process_rights
from seawall.proc.parent_death import die_with_parent

if TYPE_CHECKING:
    from seawall.actions.orders import Mounts
    from seawall.recorder.guard_socket import GuardSocket
    from seawall.recorder.writer import FrameRing


def main(fd: int, path: str, size_bytes: int, folder: str = "") -> int:
    """The whole life of the process; ``fd`` is its end of the pair; the journal of decisions is in
    ``folder``.
    """
    parent = os.getppid()
    # So that what was made is taken away, and what waits is written.
    die_with_parent(parent, signal.SIGTERM)
    own_process.be_ordinary()
    own_process.use_one_heap()
    process_rights.no_signals()  # before anything is forked
    # After the guard is gone there is nothing to record; the import may take a second.
    from seawall.recorder.guard_socket import GuardSocket  # noqa: PLC0415 - see above

    ear = GuardSocket(fd)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: ear.end())
    status = 1
    try:
        _record(ear, path, size_bytes, folder)
        status = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and its log says why
        sys.excepthook(*sys.exc_info())
    finally:
        # Not by way of the interpreter's end: a thread that waits for a dead disk would keep it,
        # and one that wakes in it needs libgcc_s (pthread_exit), which may not be had any more:
        # abort(3), and in a process that may signal nobody a general protection fault.
        os._exit(status)


def _record(ear: "GuardSocket", path: str, size_bytes: int, folder: str) -> None:
    from seawall.actions.mounts import find_mounts  # noqa: PLC0415 - see above
    from seawall.blackbox.ring import RingFile  # noqa: PLC0415
    from seawall.guard.own_place import own_cgroup  # noqa: PLC0415
    from seawall.recorder.kernel_lines import KernelLines  # noqa: PLC0415
    from seawall.recorder.recorder_loop import RecorderLoop  # noqa: PLC0415
    from seawall.recorder.recording_policy import RecordingPolicy  # noqa: PLC0415
    from seawall.recorder.samples import Samples  # noqa: PLC0415
    from seawall.recorder.unrecorded_decisions import unrecorded_decisions  # noqa: PLC0415
    from seawall.recorder.writer import FrameWriter  # noqa: PLC0415
    from seawall.replay.player import Player  # noqa: PLC0415

    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounts = find_mounts(file.read())
    boot, own = _boot_id(), own_cgroup(mounts)

    def open_ring() -> "FrameRing":
        return RingFile.open(path, size_bytes)

    writer = FrameWriter(open_ring, boot, lambda ring: unrecorded_decisions(ring, folder, boot))
    story = RecordingPolicy(
        writer.put, _about(mounts, own), lambda settings, last: Player(settings, boot, own, last)
    )
    loop = RecorderLoop(ear, writer, story, Samples(mounts), KernelLines())
    loop.rehearse()
    settle()
    for prepare in (resident_files.hold, own_process.lock, own_process.be_spared):
        prepare()  # what is refused costs only safety
    process_rights.keep_only("recorder")  # the kernel's log is open, memory is locked
    loop.run(os.getpid())


def _about(mounts: "Mounts", own: str) -> Callable[[Any, str], dict[str, JSON]]:
    """What stands in each ``start`` frame."""
    from seawall.version import VERSION  # noqa: PLC0415 - see above

    kernel = os.uname()
    constant: dict[str, JSON] = {
        "tool_version": VERSION, "host": kernel.nodename, "kernel": kernel.release,
        "page_bytes": os.sysconf("SC_PAGE_SIZE"), "mounts": mounts._asdict(), "own_cgroup": own,
        "pid": os.getpid(), "began_unix": time.time(),
    }  # fmt: skip

    def about(settings: Any, last_decision: str) -> dict[str, JSON]:
        return {**constant, "settings": settings._asdict(), "last_decision": last_decision}

    return about


def _boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()
