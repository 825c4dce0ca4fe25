# SPDX-License-Identifier: Apache-2.0
"""tracefs as a folder's descriptor, mounted or not; the host sees no new mount.

Kernel document: trace/ftrace.rst; tracefs since 4.1.  Where it is not mounted, a detached mount
is made (fsopen and fsmount, 5.2) that is in no mount namespace and ends with its descriptor;
before 5.2 a child does it in a mount namespace of its own and hands the descriptor over.
"""

import ctypes
import errno
import os
import socket
from contextlib import suppress
from typing import Final

from seawall.host.page_trace.tracing_problem import TracingProblem
from seawall.proc.forked_child import ForkedChild

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LOCKDOWN: Final = "/sys/kernel/security/lockdown"
_PRINTS: Final = "/proc/sys/kernel/tracepoint_printk"
_FIRST_PID_NAMESPACE: Final = "pid:[4026531836]"  # include/linux/proc_ns.h PROC_PID_INIT_INO
_FIRST_TIME_NAMESPACE: Final = "time:[4026531834]"
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432  # the same on every architecture
_CMD_CREATE: Final = 6
_CLOEXEC: Final = 1
_PRIVATE: Final = 0x44000  # MS_REC | MS_PRIVATE
_CLONE_NEWNS: Final = 0x20000
_SMALL_BYTES: Final = 1 << 20
_NO_MOUNT: Final = "tracefs is not mounted and may not be (CAP_SYS_ADMIN, or a seccomp filter)"
_CLOSED: Final = "tracefs is there and may not be read (lockdown, or a security module)"


def attach() -> int:
    """A descriptor of tracefs' root; TracingProblem when this process may not have one."""
    if os.geteuid() != 0:
        raise TracingProblem("refused", "tracing the kernel needs root (CAP_SYS_ADMIN)")
    if _namespace("pid") not in (_FIRST_PID_NAMESPACE, ""):
        words = "the kernel traces by the host's pids, which are not seen here: run with hostPID"
        raise TracingProblem("refused", words)
    if _namespace("time") not in (_FIRST_TIME_NAMESPACE, ""):
        words = "the kernel traces by its own clock, and ours is another (a time namespace)"
        raise TracingProblem("refused", words)
    if _prints_events():
        words = "the kernel prints every event on its console (kernel.tracepoint_printk)"
        raise TracingProblem("refused", words)
    failure: OSError | None = None
    for way in (_mounted, _detached, attach_through_child):
        try:
            root = way()
        except OSError as error:
            failure = failure or error
            continue
        if root is not None:
            return _checked(root)
    raise _named(failure or OSError(errno.ENODEV, ""))


def _checked(root: int) -> int:
    """Lockdown lets tracefs be mounted, and nothing of it be opened."""
    try:
        os.close(os.open("trace_clock", os.O_RDONLY | os.O_CLOEXEC, dir_fd=root))
        os.close(os.open("instances", FOLDER, dir_fd=root))
    except OSError as error:
        os.close(root)
        raise _named(error, _CLOSED) from error
    return root


def _named(error: OSError, refused: str = _NO_MOUNT) -> TracingProblem:
    """The condition behind an errno, as far as the machine tells; ``refused``: of EPERM."""
    if locked := _lockdown():
        return TracingProblem("refused", f"the kernel is locked down ({locked}): no tracing")
    if error.errno in (errno.EPERM, errno.EACCES):
        return TracingProblem("refused", refused)
    if error.errno in (errno.ENODEV, errno.ENOENT):
        return TracingProblem("absent", "this kernel has no tracefs (CONFIG_FTRACE)")
    return TracingProblem("failed", f"tracefs: {os.strerror(error.errno or errno.EIO)}")


def _lockdown() -> str | None:
    """``confidentiality`` when that is what is on; integrity leaves tracing alone."""
    text = ""
    with suppress(OSError), open(_LOCKDOWN, encoding="ascii") as file:
        text = file.read()
    if not text:  # in a container securityfs is seldom mounted
        with suppress(OSError):
            folder = _detached(b"securityfs")
            with suppress(OSError):
                text = read_text("lockdown", folder)
            os.close(folder)
    return "confidentiality" if "[confidentiality]" in text else None


def _prints_events() -> bool:
    """Page events on a console would stop the machine."""
    with suppress(OSError), open(_PRINTS, encoding="ascii") as file:
        return file.read().strip() != "0"
    return False


def _namespace(kind: str) -> str:
    """Ours; empty where the kernel has no such namespaces."""
    with suppress(OSError):
        return os.readlink(f"/proc/self/ns/{kind}")
    return ""


def _mounted() -> int | None:
    """Where it is mounted already to be written; automounts of debugfs are not touched."""
    with open("/proc/self/mountinfo", "rb") as table:
        for line in table:
            left, _, right = line.partition(b" - ")
            fields = left.split()
            if not right.startswith(b"tracefs ") or len(fields) < 6 or fields[3] != b"/":
                continue
            if b"rw" in fields[5].split(b","):  # in a container it may be read-only
                where = fields[4].decode("unicode_escape").encode("latin-1")
                with suppress(OSError):
                    return os.open(where, FOLDER)
    return None


def _detached(filesystem: bytes = b"tracefs") -> int:
    """By the mount calls of 5.2: a mount that lies nowhere."""
    libc = ctypes.CDLL(None, use_errno=True)
    context = _call(libc, _FSOPEN, filesystem, _CLOEXEC)
    try:
        _call(libc, _FSCONFIG, context, _CMD_CREATE, None, None, 0)
        mount = _call(libc, _FSMOUNT, context, _CLOEXEC, 0)
    finally:
        os.close(context)
    try:
        return os.open(".", FOLDER, dir_fd=mount)
    finally:
        os.close(mount)


def _call(libc: ctypes.CDLL, number: int, *arguments: object) -> int:
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def attach_through_child() -> int | None:
    """By a child with mounts of its own; the descriptor keeps the mount when the child ends."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with ours, theirs:
        ForkedChild(lambda _: _mount_and_send(theirs), (theirs.fileno(),)).wait()
        ours.setblocking(False)
        try:
            answer, handed, _, _ = socket.recv_fds(ours, 16, 1)
        except BlockingIOError:
            raise OSError(errno.EIO, "the mounting child died") from None
        if handed:
            return handed[0]
        code = int(answer or b"0") or errno.EIO
        raise OSError(code, os.strerror(code))


def _mount_and_send(to: socket.socket) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    place = b"/proc"  # any folder will do: nobody else sees this namespace
    failed = (
        libc.unshare(_CLONE_NEWNS)
        or libc.mount(b"none", b"/", None, _PRIVATE, None)
        or libc.mount(b"tracefs", place, b"tracefs", 0, None)
    )
    if failed:
        to.send(b"%d" % (ctypes.get_errno() or errno.EIO))
        return
    socket.send_fds(to, [b"0"], [os.open(place, FOLDER)])


def read_text(path: str, folder: int) -> str:
    """A control file below ``folder``; whole, for those of tracefs are small."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        parts = []
        while part := os.read(fd, _SMALL_BYTES):
            parts.append(part)
    finally:
        os.close(fd)
    return b"".join(parts).decode("utf-8", "replace")


def write_text(path: str, text: str, folder: int) -> None:
    """One write of a control file; OSError when the kernel does not take it.

    Never truncating (it deletes triggers) and never buffered (it hides EINVAL).
    """
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def has(path: str, folder: int) -> bool:
    """Whether a file is there, and may be seen."""
    try:
        os.stat(path, dir_fd=folder)
    except OSError:
        return False
    return True


def let_go(root: int) -> None:
    """Close the root; a mount of our own ends with it."""
    with suppress(OSError):
        os.close(root)
