"""Who watches over the node: nobody, the guard, or a peer from Debian."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import guard_evidence
import guard_tree
from guard_faults import MajorFaults

JOB = Path(os.environ.get("JOB", "/run/job"))
READY_SECONDS = 60
STATUS = Path("/run/seawall/status")
JOURNAL = Path("/run/seawall/decisions.jsonl")


class Killer:
    """Runs in a cgroup of its own, as its unit would; its output is kept."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.name: str = spec["name"]
        self.command: list[str] = spec["command"]
        self.ready: str = spec["ready"]
        self.spec = spec
        self.group: str = spec["group"]
        self.log = Path(f"/run/out/{self.name}.log")
        self.process: subprocess.Popen[bytes] | None = None
        self.at_ready: list[dict[str, Any]] = []
        self.major_faults: list[MajorFaults] = []
        self.ready_seconds = self.began = 0.0

    def start(self) -> bool:
        """Until it says that it is ready; False: it does not come."""
        if not self.command:
            return True
        self.spawn()
        while time.monotonic() - self.began < READY_SECONDS and self._lives():
            if self._is_ready():
                self.ready_seconds = time.monotonic() - self.began
                self.at_ready = self.numbers()
                self.major_faults = [MajorFaults(row["pid"]) for row in self.at_ready]
                return True
            time.sleep(0.1)
        return False

    def spawn(self) -> None:
        if not self.spec["is_unit"]:
            guard_tree.make(self.group)
            guard_tree.weigh(self.group, self.spec["cpu_weight"])
        self.began = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                preexec_fn=self._become,  # noqa: PLW1509 - there are no threads
                start_new_session=True,
            )  # fmt: skip

    def _lives(self) -> bool:
        """A unit's command ends when the unit is up."""
        assert self.process
        if self.spec["is_unit"] and self.process.poll() is not None:
            self.ready = ""
            return not self.process.returncode
        return self.process.poll() is None

    def _become(self) -> None:
        if self.spec["is_unit"]:
            return
        guard_tree.enter(self.group)
        guard_tree.write(Path("/proc/self/oom_score_adj"), str(self.spec.get("adj", 0)))
        if self.spec.get("nice"):
            os.setpriority(os.PRIO_PROCESS, 0, self.spec["nice"])

    def _is_ready(self) -> bool:
        with suppress(OSError):
            if self.name == "guard":
                # The page comes with the rehearsal; the journal's first line with READY=1.
                return self.ready in STATUS.read_text() and bool(JOURNAL.stat().st_size)
            if self.spec["is_unit"]:
                return not self.ready
            return self.ready in self.log.read_text(errors="replace")
        return False

    def numbers(self) -> list[dict[str, Any]]:
        return guard_evidence.of_cgroup(str(guard_tree.MEMORY / self.group[1:] / "cgroup.procs"))

    def faults(self) -> dict[str, Any]:
        """Major faults since it was ready, by pid: each with its place, or why that is not told."""
        return {str(of.pid): of.problem or of.read() for of in self.major_faults}

    def murder(self) -> None:
        """SIGKILL to all of it, in the middle."""
        for row in self.numbers():
            with suppress(OSError):
                os.kill(row["pid"], signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self) -> None:
        if not self.process:
            return
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.murder()
        self.process = None

    def told(self) -> dict[str, Any]:
        """Its own files, whole."""
        if self.name != "guard":
            return {}
        kept = {}
        for path in Path("/run/seawall").glob("*"):
            with suppress(OSError, UnicodeDecodeError):
                if path.is_file():
                    kept[path.name] = path.read_text()
        return kept
