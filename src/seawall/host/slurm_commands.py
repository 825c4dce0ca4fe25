# SPDX-License-Identifier: Apache-2.0
"""Slurm's own commands as children: each with a deadline and a bound on what it may print.

slurmctld is asked by nothing else: these have been with every release, speak its protocol of that
release, and need no account but the one that runs them.  The node's check, the guard's aide and
the judge all ask through here.
"""

import contextlib
import os
import signal
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from seawall.proc.parent_death import die_with_parent

if TYPE_CHECKING:
    import subprocess

FOLDERS: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/slurm/bin"
"""Where they are, if nobody says; HealthCheckProgram is started without PATH."""
SECONDS: Final = 20.0
"""squeue itself waits MessageTimeout, 10 s by default, and tries again."""
BYTES_MOST: Final = 256 << 20
"""100,000 jobs with long names, and more than any controller prints in good health."""
_WORDS_MOST: Final = 300
_NO_FIELD: Final = b"Invalid job format specification"
"""squeue prints an empty field for one that it does not know, and ends with 0."""
_CHUNK: Final = 1 << 16
_KEPT: Final = (
    "HOME", "LD_LIBRARY_PATH", "SACK_JWKS", "SACK_KEY", "SLURM_CONF", "SLURM_CONF_SERVER",
)  # fmt: skip
"""Of our environment: SQUEUE_USERS and its like would hide half of the jobs."""
_OWN: Final = {"TZ": "UTC", "LC_ALL": "C.UTF-8", "SLURM_BITSTR_LEN": "0"}
"""Times without a zone are printed in the process's own; long lists of tasks are not cut."""


class SlurmCommandProblem(Exception):
    """A command of Slurm's gave no answer that can be used: which, and why in words."""


class SlurmSilence(SlurmCommandProblem):
    """It did not end in time: what it was to do may be done all the same."""


class SlurmCommands:
    """``output`` and ``text`` run one and give what it printed."""

    def __init__(
        self, conf: str = "", *, folders: str = "", environment: Mapping[str, str] | None = None,
        ends_with_us: bool = False,
    ) -> None:  # fmt: skip
        """``conf``: the slurm.conf; empty: $SLURM_CONF, else where Slurm looks.  ``folders``:
        where the commands are; empty: $PATH.  ``ends_with_us``: for a child whose only work
        this is; one that takes too long is left to end with it, and nobody is signalled.
        """
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = folders or os.environ.get("PATH", "") or FOLDERS
        self._environment = {**kept, **_OWN, "PATH": path, **(environment or {})}
        if conf:
            self._environment["SLURM_CONF"] = conf
        self._ends_with_us = ends_with_us

    def text(self, *words: str, seconds: float = SECONDS, bytes_most: int = BYTES_MOST) -> str:
        """``output``, bytes that are no UTF-8 as surrogates."""
        out = self.output(*words, seconds=seconds, bytes_most=bytes_most)
        return out.decode("utf-8", "surrogateescape")

    def output(self, *words: str, seconds: float, bytes_most: int) -> bytes:
        """What it printed.  SlurmCommandProblem."""
        import subprocess  # noqa: PLC0415 - slow to import, and not every check asks

        mind = partial(die_with_parent, os.getpid()) if self._ends_with_us else None
        try:
            child = subprocess.Popen(  # noqa: S603 - no shell; words are numbers and our own
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=self._environment, cwd="/" if self._ends_with_us else None,
                start_new_session=not self._ends_with_us,
                preexec_fn=mind,  # noqa: PLW1509 - such a child has one thread
            )  # fmt: skip
        except OSError as error:
            words_of = f"{error.strerror} ({self._environment['PATH']})"
            raise SlurmCommandProblem(f"{words[0]}: {words_of}") from error
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
            _end(child, is_killed=not self._ends_with_us)
        if status or _NO_FIELD in err:
            said = " ".join(err.decode("utf-8", "replace").split()) or f"it ended with {status}"
            raise SlurmCommandProblem(f"{words[0]}: {said[:_WORDS_MOST]}")
        return out


def _read(child: "subprocess.Popen[bytes]", until: float, bytes_most: int) -> tuple[bytes, bytes]:
    import selectors  # noqa: PLC0415 - with subprocess

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


def _end(child: "subprocess.Popen[bytes]", *, is_killed: bool) -> None:
    """With whoever it started; one in state D is not waited for."""
    if child.poll() is None and is_killed:
        import subprocess  # noqa: PLC0415 - with subprocess

        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1.0)
    for pipe in (child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
