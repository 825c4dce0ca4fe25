"""A mount namespace with a /run/seawall of its own, so that no test sees another's claims."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tests.end_to_end.verbs import ENVIRONMENT, Ran, run


def missing() -> str | None:
    """Why there can be none here, and what would help."""
    if os.geteuid():
        return "a mount namespace and tracing need root: sudo make test-system"
    done = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    return f"unshare -m: {done.stderr.decode().strip()}" if done.returncode else None


class OwnRun:
    """Runs the verbs in it."""

    def __init__(self, pid: int) -> None:
        self._words = ["nsenter", "-t", str(pid), "-m", "--wd=/"]

    def words(self, *verb: str) -> Sequence[str]:
        return [*self._words, sys.executable, "-m", "seawall", *verb]

    def seawall(self, *verb: str, most_seconds: float = 90) -> Ran:
        return run(self.words(*verb), most_seconds=most_seconds)

    def cat(self, path: str) -> bytes:
        return run([*self._words, "cat", path]).answered().out

    def sh(self, script: str) -> None:
        """Something else there."""
        subprocess.run([*self._words, "sh", "-c", script], check=True)

    def start(self, *verb: str) -> subprocess.Popen[bytes]:
        """In the background, in a process group of its own; the caller ends it."""
        return subprocess.Popen(
            self.words(*verb), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=ENVIRONMENT, start_new_session=True,
        )  # fmt: skip


@contextlib.contextmanager
def own_run() -> Iterator[OwnRun]:
    """As long as it is entered."""
    script = "mkdir -p /run/seawall && mount -t tmpfs tmpfs /run/seawall && echo ready; cat"
    holder = subprocess.Popen(
        ["unshare", "-m", "--propagation", "private", "sh", "-c", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdin
    assert holder.stdout
    try:
        assert holder.stdout.readline() == b"ready\n"
        yield OwnRun(holder.pid)
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
