# SPDX-License-Identifier: Apache-2.0
"""Slurm's own commands as children: each with a deadline and a bound on what it may print.

slurmctld is asked by nothing else: these have been with every release, speak its protocol of that
release, and need no account but the one that runs them.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from typing import Final

SECONDS: Final = 20.0
"""squeue itself waits MessageTimeout, 10 s by default, and tries again."""
BYTES_MOST: Final = 256 << 20
"""100,000 jobs with long names, and more than any controller prints in good health."""
_WORDS_MOST: Final = 300
_NO_FIELD: Final = b"Invalid job format specification"
"""squeue prints an empty field for one that it does not know, and ends with 0."""
_CHUNK: Final = 1 << 16
_KEPT: Final = ("PATH", "HOME", "SLURM_CONF", "LD_LIBRARY_PATH")
"""Of our environment: SQUEUE_USERS and its like would hide half of the jobs."""
_FOLDERS: Final = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"


class SlurmCommandProblem(Exception):
    """A command of Slurm's gave no answer: which, and its last line."""


class SlurmSilence(SlurmCommandProblem):
    """It did not end in time: what it was to do may be done all the same."""


class SlurmCommands:
    """``text`` runs one and gives what it printed."""

    def __init__(self, conf: str = "") -> None:
        """``conf``: the slurm.conf; empty: $SLURM_CONF, else where Slurm looks."""
        self._environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._environment.setdefault("PATH", _FOLDERS)
        if conf:
            self._environment["SLURM_CONF"] = conf
        # Times without a zone are printed in the process's own; long lists of tasks are not cut.
        self._environment |= {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}

    def text(self, *words: str, seconds: float = SECONDS, bytes_most: int = BYTES_MOST) -> str:
        """What it printed, bytes that are no UTF-8 as surrogates.  SlurmCommandProblem."""
        try:
            child = subprocess.Popen(  # noqa: S603 - no shell; words are numbers and our own
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=self._environment, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise SlurmCommandProblem(f"{words[0]}: {error.strerror}") from error
        try:
            out, err = _read(child, time.monotonic() + seconds, bytes_most)
            status = child.wait(1.0)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise SlurmSilence(f"{words[0]} did not end in {seconds:g} s") from None
        except OverflowError:
            raise SlurmCommandProblem(
                f"{words[0]} printed more than {bytes_most >> 20} MiB"
            ) from None
        finally:
            _end(child)
        if not status and _NO_FIELD in err:
            raise SlurmCommandProblem(
                f"{words[0]}: {err.decode('utf-8', 'replace').strip()[:_WORDS_MOST]}"
            )
        if status:
            said = " ".join(err.decode("utf-8", "replace").split()) or f"it ended with {status}"
            raise SlurmCommandProblem(f"{words[0]}: {said[:_WORDS_MOST]}")
        return out.decode("utf-8", "surrogateescape")


def _read(child: "subprocess.Popen[bytes]", until: float, bytes_most: int) -> tuple[bytes, bytes]:
    out, err = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for pipe, kept in ((child.stdout, out), (child.stderr, err)):
            if pipe is not None:
                selector.register(pipe, selectors.EVENT_READ, kept)
        while selector.get_map():
            rest = until - time.monotonic()
            ready = selector.select(rest) if rest > 0.0 else []
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                key.data.extend(data)
                if len(out) + len(err) > bytes_most:
                    raise OverflowError
                if not data:
                    selector.unregister(key.fileobj)
    return bytes(out), bytes(err)


def _end(child: "subprocess.Popen[bytes]") -> None:
    """With whoever it started; one in state D is not waited for."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1.0)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
