# SPDX-License-Identifier: Apache-2.0
"""Explains and protects Linux hosts that run containers.

This file must compile on Python 2.7 and 3.6, for there it says what is needed; every way to start
Seawall imports it first.
"""

import sys

if sys.version_info < (3, 10):
    sys.stderr.write(
        "seawall needs Python 3.10 or later, %s is Python %s: "
        "try python3.13, python3.12, python3.11 or python3.10\n"
        % (sys.executable or "this", sys.version.split()[0])
    )
    sys.exit(2)
