# SPDX-License-Identifier: Apache-2.0
"""The call trace of an OOM report: through which functions the kernel came to its OOM killer.

Kernel source: lib/dump_stack.c and arch/*/kernel/dumpstack.c.  A frame is
``name+0x1f/0x80 [module]`` with an address before it up to 4.x, with ``?`` where it may be a
leftover; on ARM ``caller from name+0x1f/0x80`` or ``(caller) from [<address>] (name+0x1f/0x80)``.
"""

import re
from collections.abc import Iterator
from typing import Final

from seawall.readings.oom_log.oom_report import TraceFrame

FRAMES_MOST: Final = 128
"""Frames of one report; the kernel's stack has 16 KiB."""
_FRAME: Final = re.compile(
    rb"(\? ?)?(?<![\w.+])\.?([A-Za-z_]\w{0,99})(?:\.[a-z]\w{0,20}(?:\.\d{1,6})?){0,4}"
    rb"\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}\)?(?: \[([\w-]{1,64})[^\]\n]{0,60}\])?"
)


def frames_in(lines: bytes) -> Iterator[TraceFrame]:
    """The frames in some lines of a log, in their order."""
    for found in _FRAME.finditer(lines):
        module = found[3].decode("ascii") if found[3] else None
        yield TraceFrame(found[2].decode("ascii"), module, found[1] is not None)
