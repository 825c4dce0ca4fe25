# SPDX-License-Identifier: Apache-2.0
"""``python -m seawall``."""

from seawall.cli.main import console

console()
