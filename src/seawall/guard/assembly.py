# SPDX-License-Identifier: Apache-2.0
"""Process 1, the guard, as it is put together: opened, rehearsed, locked, and then the loop.

Imported after the aide was forked, whose memory holds nothing of it.
"""

from seawall.actions.executor import Executor
from seawall.actions.journal import Journal
from seawall.actions.observer import Observer
from seawall.actions.undo import undo
from seawall.guard import guard_memory, pid_namespace
from seawall.guard.aide import Aide
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.handover import GuardHandover
from seawall.guard.judge.judge import Judge
from seawall.guard.loop import Loop
from seawall.guard.loop_parts import LoopParts, hands_scope
from seawall.guard.notify import Notify
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.rehearsal import rehearse, shortages_on_paper
from seawall.guard.self_test import NAME as SELF_TEST
from seawall.guard.self_test import SelfTest
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings
from seawall.guard.signals import Signals
from seawall.guard.tell import guard_sentences
from seawall.guard.tell.paths import Paths
from seawall.guard.tell.teller import Teller
from seawall.guard.watcher_link import WatcherLink
from seawall.proc import process_rights
from seawall.version import VERSION

UNDO_FILE = "guard.undo"
SECOND_FROM = 5000


def guard(
    handed: GuardHandover,
    signals: Signals,
    aide: Aide,
    watcher: WatcherLink,
    recorder: RecorderLink,
    config_watch: ConfigWatch,
) -> tuple[int, Settings]:
    """Until told to end; the exit status, and the settings that were in force then."""
    rights = process_rights.keep_only("guard")  # each of its threads has what this one has now
    parts, words = assemble(handed, aide, watcher, recorder, config_watch)
    if config_watch.problem:
        words.append(guard_sentences.config_unwatched(config_watch.problem))
    loop = Loop(handed, parts, signals)
    try:
        aide.send({"do": "hold"})
        rehearse(loop)
        guard_memory.shrink()
        words += [
            why
            for why in (rights, guard_memory.be_spared(), guard_memory.lock(), guard_memory.hurry())
            if why
        ]
        guard_memory.settle()
        mode, scope = handed.settings.mode, handed.settings.scope
        loop.begin(guard_sentences.started(mode, scope, VERSION), words)
        for text in parts.hands.signal_journal.cut_short():
            parts.teller.event(text)
        return loop.run(), loop.configured
    finally:
        _end(loop)


def assemble(
    handed: GuardHandover,
    aide: Aide,
    watcher: WatcherLink,
    recorder: RecorderLink,
    config_watch: ConfigWatch,
) -> tuple[LoopParts, list[str]]:
    """Everything opened, and what could not be had, in words."""
    settings, mounts = handed.settings, handed.mounts
    guard_memory.forget_docs()
    # Before anything is opened: what it takes for a moment is there for what stays.
    shortages_on_paper(settings)
    journal = Journal(f"{handed.folder}/{UNDO_FILE}")
    words, taken = _undone(journal)  # of a guard that was killed
    never = frozenset({aide.pid, handed.watcher_pid, handed.recorder_pid} - {0})
    teller = Teller(
        settings, Paths(folder=handed.folder, config=handed.config_path), handed.boot_id, aide,
        others=handed.others, recorder=recorder,
    )  # fmt: skip
    teller.open()
    hands = Executor(
        mounts, hands_scope(settings), journal, freeze_seconds=settings.freeze_seconds, never=never,
        own_cgroup=handed.own_cgroup, tell=aide.frozen,
    )  # fmt: skip
    hands.prepare()
    observer = Observer(mounts, settings.scope, journal)
    observer.prepare()
    # Also where nothing is ever killed: its user wants to know whether it could.
    name = f"{SELF_TEST}-second" if handed.other_guard_pid else SELF_TEST
    test = SelfTest(hands, aide, mounts, handed.own_cgroup, name)
    words += [test.prepare(), pid_namespace.UNSEEN if pid_namespace.is_own() else ""]
    sense = Sense(settings, mounts, handed.own_cgroup)
    sense.open()
    judge = Judge(settings, handed.boot_id, own_cgroup=handed.own_cgroup)
    # A second one's decisions stand in the kernel's log beside the first one's.
    second = f"-{SECOND_FROM}" if handed.other_guard_pid else ""
    for decision in (teller.last_decision or second, *taken):
        judge.count_from(decision)
    parts = LoopParts(
        sense, judge, hands, observer, teller, test, aide, watcher, recorder, Notify(), config_watch
    )
    return parts, [text for text in words if text]


def _undone(journal: Journal) -> tuple[list[str], list[str]]:
    """In words, and the decisions of which a guard before may not have told.  On a full /run too it
    guards: a kill needs no journal.
    """
    try:
        journal.open()
        taken = [change.decision for _, change in journal.changes()]
        return undo(journal), taken
    except OSError as problem:
        why = f"{journal.path}: {problem.strerror}"
        return [f"{why}: it freezes and clamps nobody, for nothing could undo that"], []


def _end(loop: Loop) -> None:
    parts = loop.parts
    for text in parts.hands.undo_all():
        parts.teller.event(text)
    parts.self_test.close()
    if not loop.is_afresh:
        parts.notify.say(b"STOPPING=1")
    loop.last_words(guard_sentences.STOPPED)
    parts.recorder.bye()  # it writes what it holds while the watcher takes its tracing away
    loop.companions.close()
    loop.recorder_life.close()
    parts.teller.close()
    parts.aide.close()
    parts.config_watch.close()
