# SPDX-License-Identifier: Apache-2.0
"""What sysrq-l and sysrq-w print: where each CPU is, and where each blocked task waits.

Kernel document: Documentation/admin-guide/sysrq.rst; x86-64 and arm64, in the forms of 2.6.39
to 6.18.  A function behind ``? `` was found on the stack by chance and is left out.  A CPU that
runs user code has no kernel stack; an idle one is told as such since 4.5, or shows the idle
loop.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from seawall.host.host import Host, Unread
from seawall.readings.reading import decode_name
from seawall.readings.task_stacks import FRAMES_MOST, Stack, StackFrame, frame_of

PROBE: Final = "sysrq"
FILES: Final = "/proc/sysrq-trigger, /dev/kmsg"
"""Both are needed: one to ask, one to hear."""
_TRACES_MOST: Final = 20_000
_LINE_MOST: Final = 1024
_OWN: Final = frozenset(("write_sysrq_trigger", "__handle_sysrq", "sysrq_handle_showallcpus"))
_IDLE: Final = frozenset(("cpu_startup_entry", "do_idle", "cpu_idle", "arch_cpu_idle"))
_SYMBOL: Final = (
    rb"([A-Za-z_][\w.$]{0,200})\+0x[0-9a-f]{1,16}/0x[0-9a-f]{1,16}"
    rb"(?: \[([\w-]{1,64})(?: [0-9a-f]{1,64})?\])?"
)
_CPU: Final = re.compile(
    rb"(?:NMI backtrace for cpu |(?:sysrq: )?CPU ?)(\d{1,5})"
    rb"(?:( skipped: idling |: backtrace skipped as idling)|:? ?\Z)"
)
_HEAD: Final = re.compile(
    rb"CPU: (\d{1,5}) (?:UID: \d{1,10} )?PID: (\d{1,10}) Comm: (.{1,64}?) "
    rb"(?:Not tainted|Tainted: |Kdump: )"
)
_OLD_HEAD: Final = re.compile(rb"Pid: (\d{1,10}), comm: (.{1,64}?) (?:Not tainted|Tainted: )")
_TASK: Final = re.compile(rb"task:(.{1,64}?) +state:([A-Z]) .{0,40}?pid: {0,20}(\d{1,10})")
_OLD_TASK: Final = re.compile(
    rb"(.{1,64}?) +([DR]) +(?:running task +)?(?:[0-9a-f]{8,16} +)?\d{1,10} +(\d{1,10}) +"
    rb"\d{1,10}(?: +0x| *\Z)"
)
_ADDRESSES: Final = rb"[ \t]*(?:\[<[^>]{0,32}>\][ \t]*){0,2}"
_HERE: Final = re.compile(
    rb"(?:RIP: ([0-9a-f]{4}):|pc : |PC is at )" + _ADDRESSES + rb"(?:" + _SYMBOL + rb")?"
)
_FRAME: Final = re.compile(rb"[ \t]*(?:<{1,2}[^>]{1,16}>{1,2})?" + _ADDRESSES + _SYMBOL)
# Without an NMI a CPU is interrupted and prints its own stack: down to here it is the question.
_SHOWN_BY: Final = "showacpu"
_ENTRIES: Final = frozenset(
    (
        "el1h_64_irq", "el1_irq", "el1h_64_fiq", "ret_from_exception", "call_function_interrupt",
        "call_function_single_interrupt", "asm_sysvec_call_function",
        "asm_sysvec_call_function_single",
    )
)  # fmt: skip
_USER_ENTRIES: Final = frozenset(("el0t_64_irq", "el0_irq", "el0_irq_naked", "el0t_64_fiq"))
_USER_SEGMENTS: Final = (b"0033", b"0023")


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtrace:
    """One CPU, or one blocked task."""

    cpu: int | None
    """None for a blocked task, which has none."""
    pid: int | None
    comm: str
    state: Literal["running", "user_mode", "idle", "blocked", "own"]
    """``own``: it is seawall that asked."""
    frames: Stack
    """Innermost first."""


@dataclass(frozen=True, slots=True)
class Backtraces:
    """The backtraces that one sysrq-l or sysrq-w printed."""

    traces: tuple[Backtrace, ...]


class _Draft:
    """A backtrace that is being printed."""

    def __init__(self, cpu: int | None, *, is_idle: bool = False, is_blocked: bool = False) -> None:
        self.cpu = cpu
        self.pid: int | None = None
        self.comm = ""
        self.frames: list[StackFrame] = []
        self.is_idle = is_idle
        self.is_blocked = is_blocked
        self.is_user = False
        self.is_traced = False
        self.is_over = False

    def backtrace(self) -> Backtrace:
        self._leave_question_out()
        names = {frame.function.partition(".")[0] for frame in self.frames}
        state: Literal["running", "user_mode", "idle", "blocked", "own"] = "running"
        if self.is_blocked:
            state = "blocked"
        elif names & _OWN:
            state = "own"
        elif self.is_idle or names & _IDLE:
            state = "idle"
        elif self.is_user and not self.frames:
            state = "user_mode"
        return Backtrace(
            cpu=self.cpu, pid=self.pid, comm=self.comm, state=state, frames=tuple(self.frames)
        )

    def _leave_question_out(self) -> None:
        names = [frame.function.partition(".")[0] for frame in self.frames]
        if _SHOWN_BY not in names:
            return
        at = names.index(_SHOWN_BY)
        entries = [i for i, name in enumerate(names) if name in _ENTRIES | _USER_ENTRIES and i > at]
        if entries:
            self.is_user = names[entries[0]] in _USER_ENTRIES
            at = entries[0]
        del self.frames[: at + 1]


def parse(data: bytes) -> Backtraces:
    """Every backtrace in printed lines, oldest first; never a ParseProblem: a log may hold
    anything.
    """
    drafts: list[_Draft] = []
    draft: _Draft | None = None
    for raw in data.split(b"\n"):
        if not raw:
            continue
        line = raw[:_LINE_MOST]
        new = _begun(line, draft)
        if new is not None:
            draft = new
            if len(drafts) < _TRACES_MOST:
                drafts.append(draft)
        elif draft is not None and not draft.is_over:
            _take(line, draft)
    kept = (draft.backtrace() for draft in drafts)
    return Backtraces(tuple(one for one in kept if one.frames or one.state != "running"))


def _begun(line: bytes, before: _Draft | None) -> _Draft | None:
    """The backtrace whose first line it is; a second line about the same CPU fills that one."""
    cpu = _CPU.match(line)
    if cpu is not None:
        number = int(cpu[1])
        # 2.6.39 says it twice: "NMI backtrace for cpu 2", "CPU 2".
        is_told = before is not None and before.cpu == number and not before.is_traced
        if is_told and before is not None and before.pid is None and not before.is_idle:
            return None
        return _Draft(number, is_idle=cpu[2] is not None)
    head = _HEAD.match(line)
    if head is not None:
        number = int(head[1])
        if (
            before is not None
            and before.cpu == number
            and before.pid is None
            and not before.is_idle
        ):
            draft, is_new = before, False
        else:
            draft, is_new = _Draft(number), True
        draft.pid, draft.comm = int(head[2]), decode_name(head[3])
        return draft if is_new else None
    task = _TASK.match(line) or _OLD_TASK.match(line)
    if task is not None:
        draft = _Draft(None, is_blocked=task[2] == b"D")
        draft.pid, draft.comm = int(task[3]), decode_name(task[1])
        return draft
    return None


def _take(line: bytes, draft: _Draft) -> None:
    """One line of the backtrace that has begun."""
    old = _OLD_HEAD.match(line)
    if old is not None and draft.pid is None:
        draft.pid, draft.comm = int(old[1]), decode_name(old[2])
        return
    here = _HERE.match(line)
    if here is not None:
        _take_here(here, draft)
        return
    if line.startswith((b"Call Trace:", b"Call trace:")):
        # 2.6.39 prints all of it a second time.
        draft.is_over, draft.is_traced = draft.is_traced, True
        return
    if b"<EOE>" in line or b"</NMI>" in line:
        draft.frames.clear()  # what was printed so far served the question itself
    if not draft.is_traced:
        return
    frame = _FRAME.match(line)
    if frame is not None and len(draft.frames) < FRAMES_MOST:
        found = frame_of(frame)
        if draft.frames != [found]:  # arm64 says where the CPU is twice
            draft.frames.append(found)


def _take_here(here: re.Match[bytes], draft: _Draft) -> None:
    """Where the CPU itself is; behind a call trace it is where user code called the kernel."""
    if draft.is_traced:
        draft.is_over = True
    elif here[1] in _USER_SEGMENTS or (here[1] is None and here[2] is None):
        draft.is_user = True
    elif here[2] is not None:
        module = here[3]
        name = here[2].decode("ascii", "replace")
        draft.frames.append(
            StackFrame(name, None if module is None else module.decode("ascii", "replace"))
        )


def ask(host: Host, command: Literal["l", "w"]) -> Backtraces | Unread:
    """Have them printed now: a line or a thousand in the kernel's log and on its console."""
    answer = host.ask(PROBE, command)
    if isinstance(answer, Unread):
        return Unread(FILES, answer.why, answer.detail)
    text = answer.get("text") if isinstance(answer, dict) else None
    if not isinstance(text, str):
        return Unread(FILES, "malformed", "expected the text that was printed")
    return parse(text.encode("utf-8", "surrogateescape"))
