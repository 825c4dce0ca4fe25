"""For every test: a fault of Seawall's own is a traceback, not a line under "Could not see"."""

from seawall.readings import own_fault

own_fault.RAISES = True
