# SPDX-License-Identifier: Apache-2.0
"""The guard's loop: sense, judge, act, tell; everything it needs is handed to it, ready.

Nothing here keeps what it allocates, and nothing waits for another process: what the watcher
and the aide have to say is heard when it is there.
"""

import signal
import time
from collections.abc import Sequence

from seawall.actions.orders import Outcome
from seawall.guard import signals
from seawall.guard.companions import Companions
from seawall.guard.handover import GuardHandover
from seawall.guard.judge.stuck import may_be_stuck
from seawall.guard.loop_parts import LoopParts, hands_scope
from seawall.guard.order_files import OrderFiles
from seawall.guard.quarantine_desk import KEPT_LIST, QuarantineDesk
from seawall.guard.recorder_life import RecorderLife
from seawall.guard.reload import Reload, read
from seawall.guard.renewal import Renewal
from seawall.guard.rescue_desk import RescueDesk
from seawall.guard.settings import Settings
from seawall.guard.signals import Signals
from seawall.guard.survival import Survival
from seawall.guard.tell import guard_sentences
from seawall.guard.tick_facts import Group, Node
from seawall.guard.verdict import Verdict

LOOK_AGAIN_SECONDS = 2.0
STUCK_AGAIN_SECONDS = 20.0
"""It is a child of its own that looks twice, some seconds apart; its word holds for 30."""
CASE_SECONDS = 0.1
"""While something is short, frozen or on its way out."""
TEST_AGAIN_SECONDS = 30.0
YOUNG_SECONDS, YOUNG_TICK_SECONDS = 15.0, 1.0
"""After the start: what watcher and recorder first say is in the status soon."""
HURRIED_PACE, NEAR_PACE, PEACE_PACE, DEEP_PEACE_PACE = 0.1, 0.25, 1.0, 5.0
"""How often the watcher looks, in seconds; it glances at free memory in between."""
HURRY_LASTS_SECONDS = 2.0
"""Every shorter pace brings its next look forward: it must not come and go."""
DEEP_PEACE_SECONDS = 3.0
"""Nobody need look for so long only with headroom for minutes."""
AFRESH = 75
"""The status of a guard that wants to be started anew: EX_TEMPFAIL of sysexits.h."""
_SHORT = ("short", "holding")
_ENDS = (signal.SIGTERM, signal.SIGINT)


class Loop:
    """One guard at work."""

    def __init__(self, handed: GuardHandover, parts: LoopParts, told: Signals) -> None:
        self.parts = parts
        self.handed = handed
        self.settings = handed.settings
        """In force; while the brake is on it observes, whatever the file says."""
        self.configured = handed.settings
        """As the file says."""
        self.order_files = OrderFiles(handed.folder)
        if not handed.other_guard_pid:
            self.order_files.prepare()
        self._desk = RescueDesk()
        self._quarantine = QuarantineDesk()
        self.judge = parts.judge
        self._signals = told
        self._reload = Reload(parts, handed.config_path)
        self._fds: list[int] = []
        self._is_over = False
        self._extra: dict[str, str] = {}
        self._test_due = self._look_due = 0.0
        self._tick_seconds = 0.0
        self._young_until = 0.0
        self._pace = self._hurried_until = 0.0
        self._is_short = self._aide_knows = False
        self._blind = self._cannot_kill = ""
        self.recorder_life = RecorderLife(
            parts.aide, parts.recorder, parts.teller, handed.settings,
            is_second=bool(handed.other_guard_pid),
        )  # fmt: skip
        self.companions = Companions(
            parts.aide, parts.watcher, parts.teller, is_afresh=handed.is_afresh,
            recorders=self.recorder_life,
        )  # fmt: skip
        self._renewal = Renewal(self.companions, handed, parts.teller.event)
        self.is_afresh = False
        """It ends in order to begin again."""
        self._node: Node | None = None

    def begin(self, words: str, notes: list[str]) -> None:
        """It is ready; ``notes``: what could not be had at the start."""
        teller = self.parts.teller
        if not self.handed.other_guard_pid:
            self.parts.aide.send({"do": "quarantine", "path": KEPT_LIST})
        teller.event(words)
        for text in notes:
            teller.event(text)
        self._blind = "\n".join([text for text in notes if text != self._cannot_kill])
        self._young_until = time.monotonic() + YOUNG_SECONDS
        self.parts.notify.say(b"READY=1")
        self._reload.ask(by_file=True)  # it may have changed since the launcher read it

    def run(self) -> int:
        """Until SIGTERM or SIGINT; the exit status."""
        survival = Survival(self.parts)
        while not self._is_over:
            began = time.monotonic()
            is_well = survival.of(self.tick, began)
            self._tick_seconds = time.monotonic() - began
            if not survival.of(self._wait):
                is_well = False
                time.sleep(CASE_SECONDS)  # nothing else holds a loop that cannot wait
            survival.count(is_well=is_well)
            if survival.is_over:
                return 70
            if not self._is_over and (why := self._why_afresh(time.monotonic())):
                self.parts.teller.event(why)
                self._reload.hand_on()
                self.is_afresh = True
                return AFRESH
        return 0

    def tick(self, now: float) -> None:
        """Look, judge, act, tell."""
        parts, judge = self.parts, self.judge
        self._heed(now)
        node = self._node = parts.sense.look(now)
        groups = parts.sense.groups
        wanted = judge.wants(node, groups)
        parts.sense.detail_all(wanted)
        verdict = judge.step(node, groups)
        self._desk.look(now, judge.state())
        is_own = verdict is not None
        if verdict is None:
            verdict = self._desk.step(
                node, groups, judge, self.settings, self.handed.boot_id,
                self.order_files.brake_path,
            )  # fmt: skip
        if is_own and verdict is not None and self.settings.mode == "observe":
            self._desk.hear(verdict, now)
        if verdict is None:
            verdict = self._quarantine.step(node, groups, judge)
        self._tell_short(is_short=judge.state() in _SHORT)
        outcomes = self._act(verdict, node) if verdict is not None else []
        parts.hands.tend(now)
        # Before anything changes what the judge has seen, and behind what had to be done.
        parts.recorder.tick(node, groups, judge.state(), outcomes)
        if verdict is not None:
            parts.teller.verdict(verdict, judge.rest)
        self._tell(now, node)
        parts.hands.signal_journal.settle()
        self._test(now)
        self._ask(now, wanted)
        self._settle_pace(now, node)

    def _tell_short(self, *, is_short: bool) -> None:
        """While the node is short neither aide nor watcher forks: what a process of ours allocates
        there may start the kernel's OOM killer.  The aide hears it before it is asked for anything.
        """
        if is_short != self._aide_knows and self.parts.aide.send(
            {"do": "short", "is_short": is_short}
        ):
            self._aide_knows = is_short
        if is_short != self._is_short:
            self._is_short = is_short
            self._pace = 0.0  # the watcher has to be told

    def _act(self, verdict: Verdict, node: Node) -> list[Outcome]:
        """Orders first; words when they are carried out."""
        parts, settings = self.parts, self.settings
        is_ours = settings.mode == "enforce" or verdict.is_ordered
        hands = parts.hands if is_ours else parts.observer
        outcomes = []
        if verdict.is_ordered:  # hands that only observe reach nobody
            parts.hands.rule(settings.scope, settings.freeze_seconds)
        try:
            for order in verdict.orders:
                if is_ours:
                    parts.teller.before_end(order, parts.hands.mounts.memory)
                outcomes.append(hands.perform(order))
                self.judge.learn(outcomes[-1], node)
        finally:
            if verdict.is_ordered:
                parts.hands.rule(hands_scope(settings), settings.freeze_seconds)
        if verdict.is_ordered:
            self._desk.learn(outcomes)
        return outcomes

    def _heed(self, now: float) -> None:
        """The brake, and what the agent has brought.  A second guard only observes anyway."""
        files = self.order_files
        if self.handed.other_guard_pid:
            return
        if files.look():
            self._use(self.configured)
            self.parts.teller.event(
                guard_sentences.brake_on(files.brake_path) if files.brake_path
                else guard_sentences.brake_off(self.settings.mode)
            )  # fmt: skip
        if files.is_order_new:
            self._desk.take(files, now)
        if files.is_list_new:
            self._quarantine.take(files)
        kept = self.parts.aide.take("quarantine", is_ready=False)
        if kept is not None and (why := self._quarantine.take_kept(kept)):
            self.parts.teller.event(why)

    # --- telling ------------------------------------------------------------------------------

    def _tell(self, now: float, node: Node) -> None:
        parts = self.parts
        teller, groups = parts.teller, parts.sense.groups
        for told in self.judge.updates(node, groups):
            teller.update_decision(told)
        for text in parts.hands.words:
            teller.event(text)
        parts.hands.words.clear()
        if teller.is_time(now, self.judge.state()):
            self._put_together(now)
        teller.status(node, groups, self.judge.state(), self._extra)
        parts.notify.say(b"WATCHDOG=1")

    def _put_together(self, now: float) -> None:
        extra, parts = self._extra, self.parts
        extra["can kill"] = parts.self_test.words(now)
        extra["watcher"] = self.companions.words(now)
        extra["black box"] = self.recorder_life.words()
        extra["tick_seconds"] = f"{self._tick_seconds:.4f}"
        extra["problem"] = "\n".join([self._renewal.lock.problem, *self.order_files.problems])
        parts.teller.brake_since = self.order_files.brake_since
        result = self._desk.result
        parts.teller.rescue = None if result is None else result.document()
        extra["blind"] = "\n".join([*self._blind.splitlines(), *parts.sense.blind])
        extra["mode_why"] = self._brake_words()
        if self.handed.other_guard_pid:
            extra["mode_why"] = guard_sentences.lock_held(self.handed.other_guard_pid)

    def _brake_words(self) -> str:
        since = self.order_files.brake_since
        if since is None or self.configured.mode == "observe":
            return ""
        return guard_sentences.brake_since(since, self.order_files.brake_path)

    def last_words(self, words: str) -> None:
        """The status of a guard that has ended."""
        self.parts.teller.event(words)
        if self._node is not None:
            self._extra["ended"] = words
            self.parts.teller.status(self._node, self.parts.sense.groups, "stopped", self._extra)

    # --- beside it ----------------------------------------------------------------------------

    def _test(self, now: float) -> None:
        """Prove that it can kill, now and then; not while somebody else has to be killed."""
        test = self.parts.self_test
        if self.judge.state() in _SHORT:
            test.put_off()
            return
        if now >= self._test_due:
            self._test_due = now + self.settings.self_test_seconds
            test.begin(now)
        if test.poll(now) is None:
            return
        self.parts.teller.is_due = True
        if not test.is_proved:  # its child may have been killed by somebody else
            self._test_due = min(self._test_due, now + TEST_AGAIN_SECONDS)
        why = "" if test.is_proved else test.why_not
        if why and why != self._cannot_kill:
            self.parts.teller.event(guard_sentences.self_test_failed(why))
        self._cannot_kill = why

    def _ask(self, now: float, wanted: Sequence[Group]) -> None:
        """The watcher looks at those that lead, before they are judged; at those that have long
        been at their own limit only while the node is not short.
        """
        if now < self._look_due:
            return
        state = self.judge.state()
        why = "node_short" if state in (*_SHORT, "near") else "stuck"
        if why == "stuck":
            wanted = [group for group in wanted if may_be_stuck(group, self.settings)]
        if wanted or why == "node_short":
            pause = LOOK_AGAIN_SECONDS if why == "node_short" else STUCK_AGAIN_SECONDS
            self._look_due = now + pause
            paths = [group.path for group in wanted]
            self.parts.watcher.tell({"t": "look", "why": why, "cgroups": paths})

    def _settle_pace(self, now: float, node: Node) -> None:
        """The nearer it is, the more often the watcher looks."""
        if self.judge.is_hurried(node):
            self._hurried_until = now + HURRY_LASTS_SECONDS
        if now < self._hurried_until:
            pace = HURRIED_PACE
        elif self.judge.state() != "peace" or self.parts.sense.is_near:
            pace = NEAR_PACE
        else:
            is_deep = self.parts.sense.spare_seconds >= DEEP_PEACE_SECONDS
            pace = DEEP_PEACE_PACE if is_deep else PEACE_PACE
        asked = {"t": "pace", "seconds": pace, "short": self._is_short}
        if pace != self._pace and self.parts.watcher.tell(asked):
            self._pace = pace

    def _why_afresh(self, now: float) -> str:
        is_peace = self.judge.state() == "peace"
        return self._renewal.why(now, watch=self.settings.watch, is_peace=is_peace)

    # --- what comes from outside --------------------------------------------------------------

    def _wait(self) -> None:
        parts, fds = self.parts, self._fds
        fds.clear()
        fds.append(self._signals.fd)
        if parts.aide.fd >= 0:
            fds.append(parts.aide.fd)
        now, config_watch = time.monotonic(), parts.config_watch
        if (fd := config_watch.polled(now)) >= 0:
            fds.append(fd)
        # What the watcher says is heard at the next tick, and wakes nobody: near a shortage
        # that is a tenth of a second, in deep peace nothing of it is urgent.
        pause = self._renewal.pause(parts.sense.pause_seconds)
        if parts.self_test.is_waiting:
            pause = min(pause, parts.self_test.pause_seconds(now))
        elif self.judge.state() in _SHORT:
            pause = min(pause, CASE_SECONDS)
        if self._young_until:  # whoever has just started it looks at the status now
            pause = min(pause, YOUNG_TICK_SECONDS)
            if time.monotonic() >= self._young_until:
                self._young_until = 0.0
        pause = config_watch.pause(now, pause)
        self.hear(time.monotonic(), parts.sense.wait(pause, fds))

    def hear(self, now: float, ready: Sequence[int]) -> None:
        """What signals, the watcher and the aide have said since the last tick."""
        parts = self.parts
        if self._signals.fd in ready:
            for number in self._signals.come():
                self._take_signal(number)
        for message in parts.watcher.messages(now):
            parts.sense.hear(message)
            if message.get("t") == "hello":
                self.companions.know_watcher()
                self._pace = 0.0  # it has to be told
                parts.teller.is_due = True
        self.recorder_life.hear(now, self.judge, self.settings)
        if not self._is_over:
            state = self.judge.state()
            may_replace = state not in _SHORT
            self.recorder_life.tend(now, may_replace=may_replace)
            self.companions.tend(
                now, watch=self.settings.watch, is_peace=state == "peace", may_replace=may_replace
            )
        watch = parts.config_watch
        if watch.is_changed(now, is_ready=watch.fd in ready):
            self._reload.ask(by_file=True)
        answer = self._reload.take(now, is_ready=parts.aide.fd in ready)
        if answer is not None:
            self._take_config(answer)

    def _take_signal(self, number: int) -> None:
        if number in _ENDS:
            self._is_over = True
        elif number == signal.SIGCHLD:
            signals.reap()
        elif number == signal.SIGHUP:
            self._reload.ask()

    def _take_config(self, answer: dict[str, object]) -> None:
        """The file was read anew: by a process that has ended.  What nobody asked for by a signal
        and changes nothing is no news.
        """
        by_file = bool(answer.get("by_file"))
        settings, said, problem = read(answer, self.handed, self.configured, by_file=by_file)
        is_same = settings == self.configured if settings is not None else True
        if settings is not None and not (by_file and is_same):
            self._use(settings)
        failures = self.parts.teller.failures
        is_news = failures.hold("config", problem) or not is_same
        if is_news or not by_file:
            self.parts.teller.event(problem or said)

    def _use(self, settings: Settings) -> None:
        """From the next tick on."""
        parts, self.configured = self.parts, settings
        if self.order_files.brake_since is not None:
            settings = settings._replace(mode="observe")
        if settings.mode != self.settings.mode:
            # What only observes must not leave a limit lowered or anybody frozen.
            for text in parts.hands.undo_all():
                parts.teller.event(text)
        self.settings = settings
        parts.teller.use(settings)
        self.judge.use(settings)
        parts.recorder.change(settings, self.judge.last_decision, time.monotonic())
        parts.sense.use(settings)
        parts.observer.rule(settings.scope, settings.freeze_seconds)
        parts.hands.rule(hands_scope(settings), settings.freeze_seconds)
