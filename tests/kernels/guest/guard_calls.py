"""Which of a guard's processes make new ones, and when, by task:task_newtask in an instance of
ours in tracefs.  That tracepoint is held (module/held_tracepoints.c): to switch on another one, or
a kprobe, may hang the emulated node.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

HOME = Path("/sys/kernel/tracing/instances/harness-calls")
EVENT = HOME / "events/task/task_newtask"
_LINE = re.compile(r"\s*(seawall[\w-]*)-(\d+)\s+\[\d+\]\s+\S+\s+(\d+\.\d+): task_newtask:")


class GuardCalls:
    """From ``begin`` on."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, str, str]] = []
        self.missing = ""
        """Why nothing is followed."""

    def begin(self) -> None:
        try:
            HOME.mkdir()
            (HOME / "trace_clock").write_text("mono")
            (EVENT / "filter").write_text('COMM ~ "seawall*"')
            (EVENT / "enable").write_text("1")
        except OSError as error:
            self.missing = str(error)

    def told(self) -> list[tuple[float, str, str]]:
        """(monotonic seconds, who, what) of each call since the start."""
        with suppress(OSError):
            text = (HOME / "trace").read_text(errors="replace")
            os.truncate(HOME / "trace", 0)
            for line in text.splitlines():
                if found := _LINE.match(line):
                    who, pid, at = found.groups()
                    self._calls.append((float(at), f"{who} {pid}", "fork"))
        return self._calls
