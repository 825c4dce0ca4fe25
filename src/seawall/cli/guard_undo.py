# SPDX-License-Identifier: Apache-2.0
"""``seawall guard undo``: what a guard changed and that can be taken back, taken back.

Not a ``Verb``: it answers no question, it acts, and tells a line for each thing that it did.
"""

from argparse import Namespace
from typing import Final

from seawall.cli import statuses
from seawall.guard.guard_leftovers import (
    WATCHER,
    Neighbour,
    is_failure,
    undo_after_stop,
    undo_changes,
    undo_everything,
)
from seawall.guard.lock_file import FOLDER
from seawall.pinner.pin_request import FILES, LOCK, UNDO
from seawall.views.terminal import plain

NEIGHBOURS: Final = (Neighbour(LOCK, FILES, UNDO), WATCHER)


def run(arguments: Namespace) -> int:
    """Take back what the options say; the exit status."""
    return undo(everything=arguments.all, is_after_stop=arguments.after_stop)


def undo(*, everything: bool, is_after_stop: bool = False, folder: str = FOLDER) -> int:
    """Say what was taken back, a line each; status 2 when something could not be.

    ``is_after_stop``: what a guard that lives has in force is left to it.
    """
    if everything:
        told = undo_everything(folder, NEIGHBOURS)
    elif is_after_stop:
        told = undo_after_stop(folder, NEIGHBOURS)
    else:
        told = undo_changes(folder, NEIGHBOURS)
    for line in told:
        print(plain(line))
    if not told:
        print("Nothing was left to undo.")
    return statuses.USAGE if any(map(is_failure, told)) else 0
