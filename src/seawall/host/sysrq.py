# SPDX-License-Identifier: Apache-2.0
"""The probe ``sysrq``: what the kernel prints when it is asked where its CPUs are.

Kernel document: Documentation/admin-guide/sysrq.rst.  ``l`` prints a backtrace of every CPU,
``w`` of every blocked task.  The file takes them from root whatever kernel.sysrq allows at the
keyboard.  They go to the kernel's log and to its console: asked only when somebody wants them.

Of what is printed only functions, tasks and CPUs leave this module: registers, the bytes on a
stack and all other messages may hold anything.
"""

import errno
import os
import re
import select
import time
from typing import Final

from seawall.host.host import JSON
from seawall.host.kmsg import PATH, next_record

TRIGGER: Final = "/proc/sysrq-trigger"
COMMANDS: Final = frozenset("lw")
_QUIET_SECONDS: Final = 0.4
"""What other CPUs print comes while the file is written, or shortly after (arm64)."""
_READ_SECONDS: Final = 4.0
_READ_MOST_BYTES: Final = 8 << 20
_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_RECORD: Final = re.compile(rb"\d{1,5},\d{1,20},\d{1,20},[^;]{0,200};")
_KEPT: Final = re.compile(
    rb"(?:sysrq: )?(?:SysRq : ?)?Show (?:backtrace of all|Blocked State)"
    rb"|[Ss]ending NMI |NMI backtrace for cpu \d+|(?:sysrq: )?CPU ?\d+(?:[: ]*\Z|: backtrace)"
    rb"|CPU: \d+ .{0,40}PID: \d+ "
    rb"|Pid: \d+, comm: |RIP: [0-9a-f]{4}:|pc : |PC is at |Call [Tt]race:|Workqueue: "
    rb"|[ \t]*(?:<{1,2}/?[A-Z#]\w{1,15}>{1,2}[ \t]*)?(?:\[<[0-9a-f]+>\][ \t]*)?(?:\? )?"
    rb"[A-Za-z_][\w.$]*\+0x[0-9a-f]+/0x[0-9a-f]+"
    rb"|[ \t]*<{1,2}/?[A-Z#]\w{1,15}>{1,2}[ \t]*\Z"
    rb"|task:.{1,64} state:[A-Z]"
    rb"|.{1,64} +[DR] +(?:running task +)?(?:[0-9a-f]{8,16} +)?\d+ +\d+ +\d+ +0x[0-9a-f]+\Z"
)
_ADDRESS: Final = re.compile(rb"\[<[0-9a-f]*>\][ \t]*|\b(?:0x)?[0-9a-f]{8,16}\b")


def sysrq(command: str) -> JSON:
    """{"text"}: the printed lines that are kept, without addresses; OSError when it may not be.

    PermissionError and FileNotFoundError are of the trigger, or of /dev/kmsg.
    """
    if command not in COMMANDS:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    log = os.open(PATH, _FLAGS)
    try:
        os.lseek(log, 0, os.SEEK_END)
        _pull(command)
        return {"text": b"\n".join(_kept(_printed(log))).decode("utf-8", "surrogateescape")}
    finally:
        os.close(log)


def _pull(command: str) -> None:
    trigger = os.open(TRIGGER, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(trigger, command.encode())
    finally:
        os.close(trigger)


def _printed(log: int) -> list[bytes]:
    """The records since, until the kernel is silent."""
    until = time.monotonic() + _READ_SECONDS
    poll = select.poll()
    poll.register(log, select.POLLIN)
    records: list[bytes] = []
    size = 0
    while size < _READ_MOST_BYTES and (left := until - time.monotonic()) > 0:
        if not poll.poll(min(left, _QUIET_SECONDS) * 1000):
            break
        record = next_record(log)
        if record is not None:
            records.append(record)
            size += len(record)
    return records


def _kept(records: list[bytes]) -> list[bytes]:
    lines: list[bytes] = []
    for record in records:
        head = _RECORD.match(record)
        if head is None:
            continue
        text = record[head.end() :].partition(b"\n")[0]  # what follows are keys
        kept = filter(_KEPT.match, text.split(b"\\x0a"))
        lines += [_ADDRESS.sub(b"", line) for line in kept]
    return lines
