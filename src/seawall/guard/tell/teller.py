# SPDX-License-Identifier: Apache-2.0
"""Tells: what the guard sees, what it decided and why, and what came of it.

Nobody who listens can hold the guard up: files are made beforehand, sockets do not wait, and
whatever needs a new file or a process goes to the aide.
"""

import ctypes
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from seawall.actions.orders import Order, Outcome
from seawall.guard.aide import Aide
from seawall.guard.guard_memory import Footprint
from seawall.guard.job_place import JobPlace, job_place
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.settings import Settings
from seawall.guard.tell import (
    datagram,
    decision_lines,
    guard_sentences,
    kmsg_line,
    status_json,
    status_page,
)
from seawall.guard.tell.decision_tally import ENDS, DecisionTally
from seawall.guard.tell.decisions import Decisions
from seawall.guard.tell.failures import KINDS, Failures
from seawall.guard.tell.fixed_page import Page, news_of
from seawall.guard.tell.kmsg_line import INFO, NOTICE, WARNING, LineFile, kernel_record
from seawall.guard.tell.paths import STATUS, STATUS_JSON, Paths
from seawall.guard.tell.plain import finite, moment, plain
from seawall.guard.tell.status_values import (
    LatestDecision,
    StatusValues,
    lines_of,
    top_of,
    top_shadow_charges,
    top_uncounted,
)
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import DecisionUpdate, Rank, Verdict

CALM_SECONDS: Final = 10.0
"""In peace the status is written this often, otherwise every second; at a change at once."""
BUSY_SECONDS: Final = 1.0
TEXTFILE_SECONDS: Final = 15.0
RIVALS_SECONDS: Final = 300.0
AFTER_SECONDS: Final = 300.0
"""So long after a decision a kill of the kernel is told in peace too.  No longer: a container
that is killed again and again at its own limit would fill the journal.
"""
_SENTENCES_KEPT: Final = 8
_NAMED_WORKLOADS: Final = 10
"""In the metrics."""
_OWN_KEYS: Final = frozenset(
    {"can kill", "watcher", "black box", "blind", "others", "problem", "mode_why", "tick_seconds"}
)


class Teller:
    """``extra`` of ``status`` may hold: ``can kill`` (words of the self-test), ``watcher``,
    ``black box``, ``blind`` and ``others`` (one a line), ``problem`` (shown among the first lines),
    ``mode_why`` (why it only observes although the file says otherwise), ``tick_seconds``;
    what else is in it is shown as a note, ``key: words``.
    """

    def __init__(
        self, settings: Settings, paths: Paths, boot_id: str, aide: Aide | None,
        *, others: tuple[str, ...] = (), recorder: RecorderLink | None = None,
    ) -> None:  # fmt: skip
        self.settings = settings
        self._paths, self._boot_id, self._aide = paths, boot_id, aide
        self._page = Page(paths.folder, STATUS, status_page.PAGE_BYTES)
        self._json = Page(paths.folder, STATUS_JSON, status_json.PAGE_BYTES)
        self._decisions = Decisions(
            paths.folder,
            heading=lambda last: decision_lines.heading_line(last, self._stamp(time.time())),
        )
        self.folder = paths.folder
        self._recorder = recorder or RecorderLink(None)
        self._kmsg = LineFile(paths.kmsg)
        self._pmsg = LineFile(paths.pmsg)
        self._datagram = datagram.Datagram(settings.datagram_to)
        self._footprint: Footprint | None = None
        self._tally, self.failures = DecisionTally(), Failures()
        self._last: LatestDecision | None = None
        self._sentences: dict[str, str] = {}
        """Of the last decisions, all steps of each: why, and what is done in the end."""
        self._jobs: dict[str, JobPlace] = {}
        """Slurm's, by their cgroups: those that are being ended."""
        self._elsewhere: dict[str, dict[str, Any]] = {}
        """By decision, what is to be written once slurmctld has said where."""
        self._others = list(others)
        self._empty_scope = ""
        """What was said of it, once."""
        self._disk = self._state = ""
        self._since = time.time()
        self._written = self._listed = self._looked = self._decided = -CALM_SECONDS * 1000
        self.brake_since: float | None = None
        """Unix seconds; None: it is off."""
        self.rescue: dict[str, Any] | None = None
        """What became of the last rescue order."""
        self.is_due = True
        """The next ``status`` is written, however young the last one is."""

    def open(self) -> None:
        """Make and open everything; what could not be stands in ``problems``."""
        self._disk = _not_in_memory(self._paths.folder)
        for part in (self._page, self._json, self._decisions, self._kmsg):
            part.open()
        for failed in filter(None, [p.problem for p in (self._page, self._json, self._decisions)]):
            self.event(failed)  # in the status, where problems are shown, it may not be
        self._footprint = Footprint()
        self._datagram.open()
        if self.settings.pmsg:
            self._pmsg.open()

    def use(self, settings: Settings) -> None:
        """The configuration was read anew."""
        self.settings = settings
        self._datagram.change(settings.datagram_to)
        if settings.pmsg and not self._pmsg.is_open:
            self._pmsg.open()

    @property
    def last_decision(self) -> str:
        """The id of the last decision in this boot's file, an earlier guard's too: a guard
        that starts again counts on from it.  Empty: none.
        """
        return self._decisions.last_id if self._decisions.last_id[:8] == self._boot_id[:8] else ""

    @property
    def problems(self) -> list[str]:
        """What it cannot tell, in words; shown in the status, at most eight."""
        parts = (self._page, self._json, self._decisions, self._kmsg, self._pmsg, self._datagram)
        found = [part.problem for part in parts if part.problem]
        found += [*self.failures.words, *lines_of(self._disk)]
        if self._aide is not None and not self._aide.is_alive:
            found.append(guard_sentences.AIDE_LOST)
        return found

    def status(
        self, node: Node, groups: Mapping[str, Group], judge_state: str, extra: dict[str, str]
    ) -> None:
        """Of every tick; written when it is time."""
        self._tally.node(node)
        is_after = node.seconds - self._decided < AFTER_SECONDS
        if node.kernel_kills and (judge_state != "peace" or is_after):
            stamp = self._stamp(time.time())
            self._add(decision_lines.kernel_line(node.kernel_kills, node.seconds, stamp))
        if not self.is_time(node.seconds, judge_state):
            return
        self._state, self._written, self.is_due = judge_state, node.seconds, False
        top = top_of(groups.values())
        shown = self._shown(node, top, judge_state, extra)
        if groups and not _has_any(self.settings.scope, groups):
            words = f"acts on NOTHING: scope {' '.join(self.settings.scope)} has no cgroups here"
            shown.problems.insert(0, words)
            if words != self._empty_scope:
                self._empty_scope = words
                self.event(words)
        # `guard status` takes the text's age for that of both: the text comes last.
        self._json.write(status_json.document(shown))
        self._page.write(status_page.page(shown))
        if self._datagram.to:
            top = top_shadow_charges(groups.values())
            self._datagram.prepare(
                datagram.facts_of(node, top, shown.host, self._boot_id, self.settings.mode)
            )
        if judge_state == "peace":
            self._decisions.tend()
        for words in news_of(self._page, self._json, self._decisions):
            self.event(words)
        self._errands(shown, groups, extra)

    def is_time(self, now: float, judge_state: str) -> bool:
        """Whether ``status`` would write."""
        wait = CALM_SECONDS if judge_state == "peace" else BUSY_SECONDS
        return self.is_due or judge_state != self._state or now - self._written >= wait

    def verdict(self, v: Verdict, rest: Iterable[Rank] = ()) -> None:
        """One decision; the orders should be on their way already."""
        how = self._tally.verdict(v, self.settings.mode)
        self._decisions.know(v.decision)
        now, self._decided = time.time(), v.seconds
        why = guard_sentences.with_step(self._sentences.pop(v.decision, ""), v.sentence)
        self._last = LatestDecision(v.decision, now, v.trigger, how, why, "")
        self._sentences[v.decision] = why
        while len(self._sentences) > _SENTENCES_KEPT:
            del self._sentences[next(iter(self._sentences))]
        self.is_due = True
        words = guard_sentences.decided(v, how)
        self._datagram.send(
            {"id": v.decision, "at": moment(now), "trigger": v.trigger, "how": how,
             "frame": self._recorder.frame, "sentence": words}
        )  # fmt: skip
        self._say(WARNING if how != "reported" else NOTICE, words)
        stamp = self._stamp(now, is_acting=v.is_ordered)
        self._add(decision_lines.verdict_line(v, stamp))
        for line in decision_lines.ranking_lines(v, rest, stamp):
            self._add(line)
        if self.settings.run_on_decision:
            about = decision_lines.verdict_line(v._replace(ranking=()), stamp)
            request = {"do": "hook", "command": self.settings.run_on_decision,
                       "decision": v.decision, "how": how, "stdin": about.decode()}  # fmt: skip
            if not self._ask(request):
                self._lost("hook", v.decision, v.trigger)

    def before_end(self, order: Order, memory: str) -> None:
        """Note of whom it ends what nobody can be asked for later.

        ``memory``: the mount of the tree.
        """
        if order.step not in ENDS or "slurm" not in order.target.path:
            return
        path = order.target.path
        found, before = job_place(path, memory), self._jobs.pop(path, None)
        if found is not None:
            # After a SIGTERM its script may have ended.
            self._jobs[path] = before if before is not None and before.has_script else found
        while len(self._jobs) > _SENTENCES_KEPT:
            del self._jobs[next(iter(self._jobs))]

    def outcome(self, o: Outcome, words: str = "", seconds: float | None = None) -> None:
        """What became of an order; one that is also in a ``Told`` is told once."""
        if not self._tally.outcome(o):
            return
        now, seconds = time.time(), time.monotonic() if seconds is None else seconds
        words = words or guard_sentences.outcome_sentence(o)
        stamp = self._stamp(now, is_acting=not o.is_observed)
        self._add(decision_lines.outcome_line(o, words, seconds, stamp))
        level = WARNING if o.order.step in (*ENDS, "clamp") or o.problem else NOTICE
        self._say(level, f"{o.order.decision}: {words}")
        self._result(o.order.decision, words)
        if o.order.step in ENDS and o.processes and not o.is_observed:
            self._after_kill(o, now, seconds)

    def update_decision(self, t: DecisionUpdate) -> None:
        """How a decision went on."""
        self._tally.add_update(t)
        if t.outcome is not None:
            self.outcome(t.outcome, t.sentence, t.seconds)
            return
        self._add(decision_lines.update_line(t, self._stamp(time.time())))
        self._say(NOTICE, f"{t.decision}: {t.sentence}")
        self._result(t.decision, t.sentence)

    def event(self, words: str) -> None:
        """Something about the guard itself (``tell/guard_sentences.py`` has the words)."""
        if self._say(INFO, words):
            self._add(decision_lines.event_line(words, self._stamp(time.time())))
        self.is_due = True

    def close(self) -> None:
        """The files stay and tell how it ended."""
        for part in (self._page, self._json, self._decisions, self._kmsg, self._pmsg,
                     self._datagram):  # fmt: skip
            part.close()
        if self._footprint is not None:
            self._footprint.close()

    def _stamp(self, now: float, *, is_acting: bool = False) -> decision_lines.Stamp:
        """``is_acting``: a rescue order is carried out, whatever the guard does else."""
        mode = "enforce" if is_acting else self.settings.mode
        return decision_lines.Stamp(now, self._boot_id, mode, self._recorder.frame)

    def _add(self, line: bytes) -> None:
        """To the journal and to the black box."""
        self._decisions.add(line)
        self._recorder.line(line)

    def _say(self, level: int, words: str) -> bool:
        """To the kernel's log, to pstore, and by the aide to our own log; False when there
        were too many lines lately.
        """
        if not self._kmsg.may_say(time.monotonic(), level):
            return False
        record = kernel_record(level, words, self._kmsg.left_out)
        self._kmsg.left_out = 0
        asked = {"do": "kmsg", "record": record.decode()}
        if not self._kmsg.is_open or not self._ask(asked):
            self._kmsg.say(record)
        if self.settings.pmsg:
            self._pmsg.say(kmsg_line.pmsg_record(words, time.time(), self._recorder.frame))
        self._ask({"do": "say", "words": plain(words, 1000)})
        return True

    def _result(self, decision: str, words: str) -> None:
        last = self._last
        if last is not None and last.decision == decision:
            # Not _replace: it leaves a tuple in CPython's free list every time.
            self._last = LatestDecision(
                decision, last.unix_seconds, last.trigger, last.how, last.sentence, words
            )
        self.is_due = True

    def _after_kill(self, o: Outcome, now: float, seconds: float) -> None:
        sentence = self._sentences.get(o.order.decision, "")
        about = b""
        if self.settings.run_after_kill:
            about = decision_lines.outcome_line(o, sentence, seconds, self._stamp(now))
        requests = [*_after_kill_requests(self.settings, o, sentence, now, about)]
        job = self._jobs.get(o.order.target.path)
        if job is not None:
            requests += _job_requests(self.settings, job, o, sentence, now)
        for request in requests:
            if request["do"] == "job_output" and not request["path"]:
                self._elsewhere[o.order.decision] = request
                while len(self._elsewhere) > _SENTENCES_KEPT:
                    del self._elsewhere[next(iter(self._elsewhere))]
            elif not self._ask(request):
                self._lost(request["do"], o.order.decision, o.order.target.name)

    def _write_elsewhere(self, answer: dict[str, Any]) -> None:
        """The line of a job whose script runs on another node, where this one has its file too."""
        request = self._elsewhere.pop(str(answer.get("decision")), None)
        if request is not None:
            self._ask({**request, "path": str(answer["stderr"])})

    def _lost(self, kind: str, decision: str, what: str) -> None:
        """That the aide is gone is told anyway, and means all of it."""
        if self._aide is None or not self._aide.is_alive:
            return
        why = f"its aide has too much to do: {what}"
        if words := self.failures.learn(kind, {"problem": why, "decision": decision}):
            self.event(words)

    def _ask(self, request: dict[str, Any]) -> bool:
        return self._aide is not None and self._aide.send(request)

    def _errands(
        self, shown: StatusValues, groups: Mapping[str, Group], extra: dict[str, str]
    ) -> None:
        """What the aide does now and then."""
        if self._aide is None:
            return
        now = shown.node.seconds
        if now - self._looked >= RIVALS_SECONDS:
            self._looked = now
            self._ask({"do": "rivals", "scope": list(self.settings.scope)})
        answer = self._aide.take("rivals")
        if answer is not None and isinstance(answer.get("rivals"), list):
            self._others = [str(words) for words in answer["rivals"][:8]]
        for kind in KINDS:
            answer = self._aide.take(kind)
            if kind == "job_command" and answer is not None and answer.get("stderr"):
                self._write_elsewhere(answer)
            if failed := self.failures.learn(kind, answer):
                self.event(failed)
        if self.settings.textfile and now - self._listed >= TEXTFILE_SECONDS:
            self._listed = now
            self._ask({"do": "textfile", "path": self.settings.textfile,
                       "values": _textfile_values(
                           shown, self._tally, self._footprint, groups, extra.get("tick_seconds"),
                           is_config_taken=not self.failures.is_held("config"))})  # fmt: skip

    def _shown(
        self, node: Node, top: list[Group], state: str, extra: dict[str, str]
    ) -> StatusValues:
        own = extra.get("problem", "")
        return StatusValues(
            mode=self.settings.mode, mode_why=extra.get("mode_why", ""), state=state,
            unix_seconds=time.time(), node=node, top=top, last=self._last,
            counts=self._tally.counts(), can_kill=extra.get("can kill", ""),
            watcher=extra.get("watcher", "not told"),
            blackbox=extra.get("black box", "not told"), blind=lines_of(extra.get("blind", "")),
            problems=lines_of(own) + self.problems,
            others=lines_of(extra.get("others", "")) or self._others,
            notes=[f"{key}: {words}" for key, words in extra.items() if key not in _OWN_KEYS],
            scope=self.settings.scope, config=self._paths.config, folder=self._paths.folder,
            pid=os.getpid(), since=self._since, boot_id=self._boot_id,
            host=os.uname().nodename,  # at every boot it gets its name after the guard's start
            brake_since=self.brake_since, rescue=self.rescue,
            takes_rescue=self.settings.mode == "enforce" or self.settings.rescue,
        )  # fmt: skip


def _has_any(scope: Iterable[str], paths: Iterable[str]) -> bool:
    """Whether one of the cgroups is in it."""
    tops = [top.rstrip("/") for top in scope]
    return any(path == top or path.startswith(top + "/") for path in paths for top in tops)


# What the aide is asked for once somebody was killed: the termination message, the command.


def _after_kill_requests(
    settings: Settings, o: Outcome, sentence: str, unix_seconds: float, about: bytes
) -> Iterator[dict[str, Any]]:
    """``sentence``: why; ``about``: the outcome's line of the journal, for the command."""
    target = o.order.target
    if settings.termination_message:
        words = guard_sentences.for_the_container(o, sentence, moment(unix_seconds))
        yield {"do": "termination_message", "cgroup": target.path, "name": target.name,
               "decision": o.order.decision, "words": words, "unix_seconds": unix_seconds,
               "kubelet_root": settings.kubelet_root}  # fmt: skip
    if settings.run_after_kill:
        yield {"do": "run", "command": settings.run_after_kill, "decision": o.order.decision,
               "stdin": about.decode()}  # fmt: skip


def _job_requests(
    settings: Settings, job: JobPlace, o: Outcome, sentence: str, unix_seconds: float
) -> Iterator[dict[str, Any]]:
    """Of a Slurm job: its own output, slurmctld."""
    decision = o.order.decision
    words = guard_sentences.for_the_job(o, sentence, moment(unix_seconds))
    # Where its script was, the job ends with it on all nodes.
    is_end = settings.job_end_whole and not job.has_script
    is_asked = settings.job_comment or is_end
    user = job.user
    wants = settings.job_output and is_asked and not job.has_script and user is not None
    if settings.job_output and (job.stderr or wants):
        yield {"do": "job_output", "decision": decision, "words": words, "path": job.stderr,
               "uid": user and user.uid, "gid": user and user.gid,
               "groups": list(user.groups) if user else []}  # fmt: skip
    if is_asked:
        yield {"do": "job_command", "decision": decision, "words": words, "job": job.job,
               "comment": settings.job_comment, "end": is_end, "wants_stderr": wants,
               "commands": settings.slurm_commands, "conf": settings.slurm_conf}  # fmt: skip


# What the guard tells the aide for the textfile collector; ``tell/textfile.py`` has the names.


def _textfile_values(
    shown: StatusValues, tally: DecisionTally, footprint: Footprint | None,
    groups: Mapping[str, Group], tick_seconds: str | None, *,
    is_config_taken: bool,
) -> dict[str, Any]:  # fmt: skip
    """Bytes and seconds; None: not known."""
    node = shown.node
    return {
        "mode": shown.mode, "can_kill": shown.can_kill_is_proved, "state": shown.state,
        "headroom_bytes": node.headroom_bytes if node.is_seen else None,
        "residual_bytes": node.residual_bytes,
        "residual_grown_bytes": node.residual_grown_bytes if node.is_seen else None,
        "decisions": tally.rows(),
        "kills": tally.kills, "predicted_bytes": tally.predicted_bytes,
        "returned_bytes": tally.returned_bytes,
        "reaction_seconds": finite(tally.reaction_seconds, 6),
        "last_tick_seconds": tick_seconds, "config_taken": is_config_taken,
        "watcher_up": node.claims_seconds is not None,
        "own_major_faults": tally.own_major_faults,
        "resident_bytes": footprint and footprint.resident_bytes(),
        "unix_seconds": finite(shown.unix_seconds),
        "workloads": [[plain(group.name, 256), group.outside.certain_bytes]
                      for group in top_uncounted(groups.values(), _NAMED_WORKLOADS)],
    }  # fmt: skip


# Whether the guard's folder lies in memory (statfs(2)): a disk that is stuck holds up whoever
# writes to it.

_TMPFS_MAGIC: Final = 0x01021994  # include/uapi/linux/magic.h
_RAMFS_MAGIC: Final = 0x858458F6
_STATFS_BYTES: Final = 256


def _not_in_memory(folder: str) -> str:
    """Empty when ``folder`` is on a tmpfs, else what follows from it, in words."""
    library = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if library.statfs(os.fsencode(folder), buffer) != 0:
        return f"{folder}: {os.strerror(ctypes.get_errno())}"
    kind = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    if kind in (_TMPFS_MAGIC, _RAMFS_MAGIC):
        return ""
    return f"{folder} is on no tmpfs: a stuck disk can hold the guard up"
