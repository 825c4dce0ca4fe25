# SPDX-License-Identifier: Apache-2.0
"""The entry point of ``python -m seawall``: the same command line as ``seawall``."""

from seawall.cli.main import console

console()
