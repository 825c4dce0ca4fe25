# SPDX-License-Identifier: Apache-2.0
"""A check of the site's own: its program, killed with all that it started at its deadline."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from seawall.host.host import JSON

_WORDS_MOST: Final = 200


def site_command(words: Sequence[str], seconds: float) -> JSON:
    """[status, the first line that it printed]; status None: it took too long; OSError."""
    with subprocess.Popen(  # noqa: S603 - root's own file names it
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        cwd="/", start_new_session=True,
    ) as child:  # fmt: skip
        try:
            output, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            return [None, ""]
    lines = output.decode("utf-8", "replace").strip().split("\n")
    return [child.returncode, lines[0][:_WORDS_MOST]]
