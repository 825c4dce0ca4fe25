# SPDX-License-Identifier: Apache-2.0
"""Whether munged takes connections; without it no command of Slurm's works on this node."""

import os
import socket

from seawall.host.host import JSON


def munge_answer(path: str) -> JSON:
    """``up``, ``refused``, ``absent``, or ``no_folder`` where nothing of munge is there."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            one.connect(path)
        except ConnectionRefusedError:
            return "refused"
        except FileNotFoundError:
            return "absent" if os.path.isdir(os.path.dirname(path)) else "no_folder"
    return "up"
