# SPDX-License-Identifier: Apache-2.0
"""The controller's folder: what it has learnt, what it did, and who of several is the active one.

``state.json`` is replaced whole; ``active.lock`` is held by the one controller that runs;
``state.lock`` for the moment of each change, by the controller and by a person's verbs.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from seawall.cluster.slurm.job_quarantine import JobQuarantine, job_quarantine
from seawall.cluster.slurm.slurm_death import SlurmDeath, slurm_death
from seawall.problems import UsageProblem
from seawall.replaced_file import replace_there

_FORMAT: Final = 1
_BYTES_MOST: Final = 256 << 20
_MODE: Final = 0o600


@dataclass(slots=True)
class SlurmState:
    """All of it.  Times are Unix seconds."""

    cluster: str = ""
    watched_since: float | None = None
    polled_at: float | None = None
    """slurmctld's last whole answer."""
    is_dry_run: bool = True
    """The policy lets nothing be done."""
    message: str = ""
    """Why nobody is held just now; empty: nothing stands in the way."""
    evidence: str = ""
    """Folder of the records that nodes left; empty: none is read."""
    silent: Any = None
    deaths: list[SlurmDeath] = field(default_factory=list)
    quarantines: dict[str, JobQuarantine] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {
            "format": _FORMAT, "cluster": self.cluster, "watched_since": self.watched_since,
            "polled_at": self.polled_at, "is_dry_run": self.is_dry_run,
            "message": self.message, "evidence": self.evidence, "silent": self.silent,
            "deaths": [one.document() for one in self.deaths],
            "quarantines": [one.document() for one in self.quarantines.values()],
        }  # fmt: skip


class SlurmStateFolder:
    """One folder; each method says UsageProblem where it cannot be read or written."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self._active: IO[bytes] | None = None

    def read(self) -> SlurmState:
        """Empty where nothing was written yet."""
        file = self.path / "state.json"
        try:
            with file.open("rb") as opened:
                data = opened.read(_BYTES_MOST + 1)
        except FileNotFoundError:
            return SlurmState()
        except PermissionError as error:
            words = "the folder is the controller's account's alone: ask as it, or as root"
            raise UsageProblem(f"{file}: {error.strerror}; {words}") from error
        except OSError as error:
            raise UsageProblem(f"{file}: {error.strerror}") from error
        if len(data) > _BYTES_MOST:
            raise UsageProblem(f"{file}: more than {_BYTES_MOST >> 20} MiB")
        try:
            return _state(json.loads(data))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            words = f"{file}: not written by this release ({error}); move it away to begin anew"
            raise UsageProblem(words) from None

    @contextlib.contextmanager
    def change(self) -> Iterator[SlurmState]:
        """The state as it stands, which is written when the block ends without a problem."""
        with self._lock("state.lock", fcntl.LOCK_EX):
            state = self.read()
            yield state
            self._write(state)

    def be_active(self) -> bool:
        """Whether this process is the one controller of the folder, until it ends."""
        if self._active is None:
            file = self._open("active.lock")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                file.close()
                return False
            self._active = file
        return True

    def end(self) -> None:
        """It is active no more."""
        if self._active is not None:
            self._active.close()
            self._active = None

    def has_active(self) -> bool:
        """Whether any process is."""
        try:
            with (self.path / "active.lock").open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    @contextlib.contextmanager
    def _lock(self, name: str, kind: int) -> Iterator[None]:
        with self._open(name) as file:
            fcntl.flock(file, kind)
            yield

    def _open(self, name: str) -> IO[bytes]:
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            return open(os.open(self.path / name, flags, _MODE), "r+b")
        except OSError as error:
            raise UsageProblem(f"{self.path / name}: {error.strerror}") from error

    def _write(self, state: SlurmState) -> None:
        data = json.dumps(state.document(), ensure_ascii=True, separators=(",", ":")).encode()
        try:
            replace_there(str(self.path / "state.json"), data, _MODE)
        except OSError as error:
            raise UsageProblem(f"{self.path}: {error.strerror}") from error


def _state(document: Any) -> SlurmState:
    if document["format"] != _FORMAT:
        raise ValueError(f"format {document['format']!r}")
    quarantines = [job_quarantine(one) for one in document["quarantines"]]
    return SlurmState(
        str(document["cluster"]), _number(document["watched_since"]),
        _number(document["polled_at"]), document["is_dry_run"] is not False,
        str(document["message"]), str(document.get("evidence", "")), document["silent"],
        [slurm_death(one) for one in document["deaths"]],
        {one.name: one for one in quarantines},
    )  # fmt: skip


def _number(value: Any) -> float | None:
    return None if value is None else float(value)
