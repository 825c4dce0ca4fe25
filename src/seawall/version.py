# SPDX-License-Identifier: Apache-2.0
"""The one place where the version stands besides pyproject.toml (a test compares them)."""

from typing import Final

VERSION: Final = "0.1.0"
