# SPDX-License-Identifier: Apache-2.0
"""What the loop is made of, ready to be used."""

from typing import NamedTuple

from seawall.actions.executor import Executor
from seawall.actions.observer import Observer
from seawall.guard.aide import Aide
from seawall.guard.config_watch import ConfigWatch
from seawall.guard.judge.judge import Judge
from seawall.guard.notify import Notify
from seawall.guard.recorder_link import RecorderLink
from seawall.guard.self_test import SelfTest
from seawall.guard.sense.sense import Sense
from seawall.guard.settings import Settings
from seawall.guard.tell.teller import Teller
from seawall.guard.watcher_link import WatcherLink


class LoopParts(NamedTuple):
    """The parts of one guard."""

    sense: Sense
    judge: Judge
    hands: Executor
    observer: Observer
    teller: Teller
    self_test: SelfTest
    aide: Aide
    watcher: WatcherLink
    recorder: RecorderLink
    notify: Notify
    config_watch: ConfigWatch


def hands_scope(settings: Settings) -> tuple[str, ...]:
    """What observes can reach nothing but the self-test's own child."""
    return settings.scope if settings.mode == "enforce" else ()
