# SPDX-License-Identifier: Apache-2.0
"""The end of a report: the summary, the chosen one, the kills, the panic, the reaper.

What belongs to it is told by pid, for kills of the next report look the same.
"""

from dataclasses import dataclass, field

from seawall.readings.oom_log import kill_lines
from seawall.readings.oom_log.oom_report import Choice, Kill, Reaped
from seawall.readings.oom_log.parts import LISTED_MOST, TWICE_WITHIN
from seawall.readings.oom_log.wraps import Message


@dataclass(slots=True)
class Ending:
    """A method is named after the shape that it takes; False for a line that is none."""

    summary: kill_lines.Summary | None = None
    chosen: Choice | None = None
    kills: list[Kill] = field(default_factory=list)
    group_path: str | None = None
    reaped: list[Reaped] = field(default_factory=list)
    unreaped: list[int] = field(default_factory=list)
    has_no_victim: bool = False
    has_panic: bool = False
    says_memcg: bool = False
    """``Memory cgroup out of memory``."""
    says_global: bool = False
    """``Out of memory``."""

    @property
    def is_there(self) -> bool:
        """The kernel said how it ended; only kills of its group and the reaper may follow."""
        return bool(self.kills or self.has_no_victim or self.has_panic)

    def accepts_choice(self, text: str) -> bool:
        """Whether this may be the chosen one of this report."""
        named = kill_lines.read_choice(text, 0)
        if named is None or self.kills or self.has_no_victim:
            return False
        if self.chosen:
            return self.chosen[:3] == named[:3]
        summed = self.summary.choice if self.summary else None
        return summed is None or summed.pid == named.pid

    def accepts_kill(self, text: str, *, of_memcg: bool, of_node: bool) -> bool:
        """Whether this may be a kill of this report; ``of_node``: it shows the node's memory."""
        killed = kill_lines.read_killed(text, 0)
        if killed is None or self.has_no_victim:
            return False
        if self._came_before(killed) or self._is_named_before(killed):
            return True
        if self.kills:
            return self.group_path is not None
        if not self.chosen and self.summary and self.summary.choice:
            return self.summary.choice.pid == killed.pid
        if of_memcg:
            return not text.startswith("Out of")
        return not (of_node and text.startswith("Memory cgroup"))

    def _came_before(self, killed: Kill) -> bool:
        return any(kill._replace(line=killed.line) == killed for kill in self.kills[-TWICE_WITHIN:])

    def _is_named_before(self, killed: Kill) -> bool:
        """``Kill process ... sharing same memory`` comes first, then its sizes."""
        return killed.total_vm_bytes is not None and any(
            kill.pid == killed.pid and kill.total_vm_bytes is None
            for kill in self.kills[-TWICE_WITHIN:]
        )

    def oom_kill(self, message: Message) -> bool:
        self.summary = kill_lines.read_summary(message.text, message.line.number)
        return self.summary is not None

    def choice(self, message: Message) -> bool:
        self.chosen = self.chosen or kill_lines.read_choice(message.text, message.line.number)
        self._note_whose(message.text)
        return self.chosen is not None

    def killed(self, message: Message) -> bool:
        kill = kill_lines.read_killed(message.text, message.line.number)
        if kill is None or len(self.kills) >= LISTED_MOST:
            return False
        if not self._came_before(kill):
            if self._is_named_before(kill):
                self.kills = [other for other in self.kills if other.pid != kill.pid]
            self.kills.append(kill)
        self._note_whose(message.text)
        return True

    def _note_whose(self, text: str) -> None:
        self.says_memcg = self.says_memcg or text.startswith("Memory cgroup")
        self.says_global = self.says_global or kill_lines.is_global(text)

    def sharing(self, message: Message) -> bool:
        kill = kill_lines.read_sharing(message.text, message.line.number)
        if kill is None or len(self.kills) >= LISTED_MOST:
            return False
        self.kills.append(kill)
        return True

    def group(self, message: Message) -> bool:
        self.group_path = kill_lines.read_group(message.text)
        return self.group_path is not None

    def nobody(self, _: Message) -> bool:
        self.has_no_victim = True
        return True

    def panic(self, message: Message) -> bool:
        killed_init = any(kill.pid == 1 for kill in self.kills)
        of_init = killed_init and "Attempted to kill init" in message.text
        self.has_panic = self.has_panic or of_init or kill_lines.is_about_memory(message.text)
        return self.has_panic

    def has_killed(self, pid: int) -> bool:
        """Whether a line of this report says that it killed that process."""
        return any(kill.pid == pid for kill in self.kills)

    def reap(self, message: Message) -> bool:
        """Keep what the reaper says of a task."""
        if message.shape == "unreaped":
            pid = kill_lines.read_unreaped(message.text)
            is_new = pid not in self.unreaped[-TWICE_WITHIN:]
            if pid is not None and is_new and len(self.unreaped) < LISTED_MOST:
                self.unreaped.append(pid)
            return pid is not None
        found = kill_lines.read_reaped(message.text, message.line.number)
        if found is None:
            return False
        twice = any(reaped[:-1] == found[:-1] for reaped in self.reaped[-TWICE_WITHIN:])
        if len(self.reaped) < LISTED_MOST and not twice:
            self.reaped.append(found)
        return True
