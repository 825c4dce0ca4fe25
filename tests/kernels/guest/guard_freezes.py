"""Freezes a cgroup as a guard would, journal first: ``python3 guard_freezes.py FOLDER``."""

import os
import sys

from seawall.actions.journal import Change, Journal

folder = sys.argv[1]
journal = Journal("/run/seawall/guard.undo")
journal.open()
change = Change("freeze2", folder, os.stat(folder).st_ino, "0", "1", "5eed-1")
if journal.begin(change) is None:
    sys.exit("not journalled")
journal.close()
with open(f"{folder}/cgroup.freeze", "w") as file:
    file.write("1")
