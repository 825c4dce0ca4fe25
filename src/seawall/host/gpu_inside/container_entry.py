# SPDX-License-Identifier: Apache-2.0
"""A fresh interpreter that becomes what a container's process is, and asks the driver as such.

Its descriptors: 0 the question, a line of JSON, and then whether it is still wanted; 3 the answer;
4 words on the way, lines of JSON; 5 the process's folder of procfs.  Why each step is where it is:
docs/decisions/0009.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
from contextlib import suppress
from errno import EIO, EPIPE
from typing import Any, Final, NoReturn

from seawall.host.device_access.device_cgroup import Hierarchy, JoinError, join
from seawall.host.expendable import unread_for
from seawall.host.gpu_inside.process_namespaces import ProcessNamespaces
from seawall.host.gpu_inside.standing import (
    TaskCredentials,
    be_undumpable,
    standing_of,
    take,
    take_limits,
)
from seawall.host.gpu_inside.syscalls import refuse_calls
from seawall.host.gpu_libraries import Loaded, load
from seawall.host.gpu_query import answer_of, library_row
from seawall.host.host import JSON
from seawall.proc.parent_death import die_with_parent

QUESTION: Final = 0
ANSWER: Final = 3
WORDS: Final = 4
PROCESS: Final = 5
_LINE_MOST: Final = 1 << 20
_DESCRIPTORS_MOST: Final = 1 << 16
_FILE_MOST: Final = 64 << 10
_RUNTIMES: Final = ("runc", "crun", "youki")
"""Their process becomes the container's, and has all rights until then.  It calls itself
``runc:[2:INIT]`` and may run from a copy in memory."""
_INITS: Final = tuple(f"{name}:[" for name in _RUNTIMES)
_COPIES: Final = tuple(f"/memfd:{name}" for name in _RUNTIMES)
_KEYCTL_JOIN_SESSION: Final = 1
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219}
_CALLS: Final = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """The program: read the question, become what the container's process is, ask the driver."""
    _keep_only_these()
    question = json.loads(_line())
    _stand_alone(question["parent"])
    nvml, cuda = load(("libnvidia-ml.so.1",)), load(("libcuda.so.1",))
    _say(libraries={"nvml": _library(nvml), "cuda": _library(cuda)})
    if nvml.library is None and cuda.library is None:
        return
    try:
        _go_there(question)
        _ask_there(question, nvml, cuda)
    except JoinError as error:
        _say(problem=[error.why, error.words])
    except OSError as error:
        unread = unread_for("", error.errno or EIO)
        _say(problem=[unread.why, error.strerror or unread.detail])


def _keep_only_these() -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) > PROCESS:
            with suppress(OSError):
                os.close(int(name))


def _line() -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < _LINE_MOST:
        part = os.read(QUESTION, _LINE_MOST)
        if not part:
            break
        data += part
    return data


def _say(**words: JSON) -> None:
    os.write(WORDS, json.dumps(words).encode() + b"\n")


def _library(loaded: Loaded) -> JSON:
    """As the probe tells it, and which file it is."""
    row = library_row(loaded)
    status = None if loaded.path is None else os.stat(loaded.path)
    row["file"] = None if status is None else [status.st_dev, status.st_ino]
    return row


def _stand_alone(parent: int) -> None:
    """Die with the parent, be the first to go, share no terminal and no keys with anybody."""
    be_undumpable()
    die_with_parent()
    if os.getppid() != parent:  # it died before that was set
        sys.exit(0)
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    if number := _KEYCTL.get(os.uname().machine):
        _CALLS.syscall(ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION), None)


def _go_there(question: dict[str, Any]) -> None:
    """Into its cgroup and namespaces, with its rights; JoinError, OSError.

    From here on no module is imported: it would be the container's file.
    """
    before = _as_it_is()
    places = ProcessNamespaces(PROCESS)
    if _as_it_is() != before:  # it ran another program meanwhile, or is somebody else now
        raise JoinError("vanished", "it changed while it was looked at: ask once more")
    standing = before
    sys.meta_path.clear()
    sys.path.clear()
    join(Hierarchy(*question["hierarchy"]), os.fsencode(question["cgroups"]))
    places.enter()
    take_limits(standing)
    take(standing, places.user_namespace)
    if places.user_namespace is not None:
        os.close(places.user_namespace)
    os.close(PROCESS)
    die_with_parent()  # a change of ids took that away


def _as_it_is() -> TaskCredentials:
    """What the process may now; JoinError for one that a runtime has not let go yet."""
    program = os.readlink("exe", dir_fd=PROCESS)
    name = _file("comm").decode("ascii", "replace").rstrip("\n")
    if (
        program.startswith(_COPIES)
        or name.startswith(_INITS)
        or {name, program.rpartition("/")[2]} & set(_RUNTIMES)
    ):
        raise JoinError("vanished", "its runtime is just starting it: ask once more")
    return standing_of(_file("status"), _file("limits"))


def _file(name: str) -> bytes:
    fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=PROCESS)
    try:
        return os.read(fd, _FILE_MOST)
    finally:
        os.close(fd)


def _ask_there(question: dict[str, Any], nvml: Loaded, cuda: Loaded) -> None:
    """Fork the one that asks: first of all ours in the container's pid namespace."""
    pid = os.fork()
    if not pid:
        try:
            _be_the_one_inside(question, nvml, cuda)
        finally:
            os._exit(1)
    _say(pid=pid)
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its number stays its own
        if ended is not None:
            _say(ended=[ended.si_code == os.CLD_EXITED, ended.si_status])
    os.read(QUESTION, 1)
    with suppress(OSError):
        os.waitpid(pid, 0)


def _be_the_one_inside(question: dict[str, Any], nvml: Loaded, cuda: Loaded) -> NoReturn:
    """Ask, answer, end.  One descriptor is left of what came from outside."""
    signal.alarm(int(question["seconds"]) + 2)
    for number in (QUESTION, 1, 2):
        with suppress(OSError):
            os.close(number)
    os.closerange(ANSWER + 1, _DESCRIPTORS_MOST)  # what a library opened as root, too
    os.setsid()  # a signal to its own group reaches nobody of this host
    nowhere = os.pipe()  # 0 and 1: whatever a library prints ends there
    os.dup2(nowhere[1], 2)
    os.set_blocking(nowhere[1], False)
    die_with_parent()
    be_undumpable()
    poll = select.poll()
    poll.register(ANSWER, 0)
    if poll.poll(0):  # nobody listens: the parent had died before
        os._exit(EPIPE)
    os.environ.update(question["environment"])
    answer: dict[str, JSON]
    try:
        refuse_calls()
        answer = answer_of(nvml, cuda)
    except OSError as error:
        answer = {"problem": ["failed", f"no filter of system calls was set: {error.strerror}"]}
    view = memoryview(json.dumps(answer).encode())
    while view:
        view = view[os.write(ANSWER, view) :]
    os._exit(0)
