# SPDX-License-Identifier: Apache-2.0
"""Running verbs without the start of an interpreter, for tests that look at what a verb answers.

One interpreter for each process of the tests has imported Seawall, and forks itself for a command:
that has a process of its own and ends as ``console`` does, as any other.  Whoever measures a start,
files or time, and whoever looks at live processes, takes ``verbs.seawall``.
"""

import atexit
import functools
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import time
from importlib import import_module
from typing import Any

from tests.end_to_end.verbs import ENVIRONMENT, Ran

MOST_MESSAGE_BYTES = 1 << 17


def seawall(*words: str, most_seconds: float = 60, **environ: str) -> Ran:
    """``seawall WORDS``, with these variables of its environment too; a command that outlives
    ``most_seconds`` fails the test.
    """
    began = time.monotonic()
    ends = [os.pipe() for _ in ("stdout", "stderr")]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        command = {"words": words, "folder": os.getcwd(), "environ": environ}
        given = [write for _, write in ends] + [theirs.fileno()]
        socket.send_fds(_warm_interpreter(), [json.dumps(command).encode()], given)
        theirs.close()
        for _, write in ends:
            os.close(write)
        pid = int.from_bytes(ours.recv(4), sys.byteorder)
        try:
            out, err = _read_to_end([read for read, _ in ends], began + most_seconds)
            ours.settimeout(max(1.0, began + most_seconds - time.monotonic()))
            status = int.from_bytes(ours.recv(4), sys.byteorder, signed=True)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
    return Ran(status, out, err, time.monotonic() - began)


def _read_to_end(descriptors: list[int], until: float) -> list[bytes]:
    """What comes out of each until nobody can write there; closes them."""
    data = dict.fromkeys(descriptors, b"")
    with selectors.DefaultSelector() as selector:
        for descriptor in descriptors:
            selector.register(descriptor, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(max(0.0, until - time.monotonic()))
                if not ready:
                    raise TimeoutError("the command did not end")
                for key, _ in ready:
                    part = os.read(key.fd, 1 << 20)
                    data[key.fd] += part
                    if not part:
                        selector.unregister(key.fd)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
    return [data[descriptor] for descriptor in descriptors]


@functools.cache
def _warm_interpreter() -> socket.socket:
    """Where it takes commands; started with the first, it ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", "tests.end_to_end.warm_verbs", str(theirs.fileno())]
    path = os.pathsep.join([ENVIRONMENT["PYTHONPATH"], os.path.abspath(f"{__file__}/../../..")])
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
        env={**ENVIRONMENT, "PYTHONPATH": path},
    )  # fmt: skip
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


# --- the interpreter -------------------------------------------------------------------


def serve(commands: socket.socket) -> None:
    """Fork for each command, and say how it ended, until nobody sends any more."""
    running: dict[int, tuple[int, socket.socket]] = {}
    poll = selectors.DefaultSelector()
    poll.register(commands, selectors.EVENT_READ)
    while True:
        for key, _ in poll.select():
            if key.fileobj is not commands:
                pid, answer = running.pop(key.fd)
                poll.unregister(key.fd)
                os.close(key.fd)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with answer:
                    answer.send(status.to_bytes(4, sys.byteorder, signed=True))
                continue
            message, given, *_ = socket.recv_fds(commands, MOST_MESSAGE_BYTES, 3)
            if not message:
                return
            pid = os.fork()
            if not pid:
                _run(json.loads(message), given)
            for descriptor in given[:2]:
                os.close(descriptor)
            answer = socket.socket(fileno=given[2])
            answer.send(pid.to_bytes(4, sys.byteorder))
            ended = os.pidfd_open(pid)
            running[ended] = (pid, answer)
            poll.register(ended, selectors.EVENT_READ)


def _run(command: dict[str, Any], given: list[int]) -> None:
    """The command, in the fork: as ``python -m seawall`` would be started."""
    from seawall.cli.main import console

    os.dup2(given[0], 1)
    os.dup2(given[1], 2)
    os.closerange(3, 1024)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - for life
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(command["folder"])
    os.environ.update(command["environ"])
    time.tzset()
    sys.argv = ["seawall", *command["words"]]
    try:
        console()
    except SystemExit as ended:
        sys.stdout.flush()
        os._exit(int(ended.code or 0))
    os._exit(70)


def _import_what_verbs_need() -> None:
    for room in ("cli", "views", "findings", "accounts", "readings", "host"):
        package = import_module(f"seawall.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            import_module(module.name)


if __name__ == "__main__":
    _import_what_verbs_need()
    serve(socket.socket(fileno=int(sys.argv[1])))
