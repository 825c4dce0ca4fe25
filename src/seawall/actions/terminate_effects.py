# SPDX-License-Identifier: Apache-2.0
"""SIGTERM to every process of a cgroup and all below it: they may end by themselves.

The first process of a pid namespace that has no handler for it does not get it (signal(7)).
"""

import os
import signal

from seawall.actions.freeze_effects import Freezes, is_frozen
from seawall.actions.signal_effects import SignalEffects
from seawall.actions.trees import Trees
from seawall.actions.work import Work


def terminate(
    folder: int, work: Work, signals: SignalEffects, trees: Trees, freezes: Freezes
) -> bool:
    """One pass.  A freeze of ours is ended after it: the frozen do not hear."""
    version = trees.mounts.version
    signals.send(folder, version, signal.SIGTERM, work)
    unseen = work.unseen
    if unseen:
        work.say(unseen)
    path = work.order.target.path
    twin = os.dup(folder) if version == 2 else trees.freezer(path, folder)
    for held in [h for h in freezes.active if h.path == path]:
        freezes.thaw(held)
    if twin is not None:
        try:
            if is_frozen(twin, version):
                work.say("somebody else froze it: SIGTERM is heard once it is thawed")
        finally:
            os.close(twin)
    return not work.unsignalled and not unseen
