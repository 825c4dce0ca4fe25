# SPDX-License-Identifier: Apache-2.0
"""TOML 1.0 (https://toml.io) on every Python that Seawall supports.

Python has ``tomllib`` since 3.11.  For 3.10 ``_vendor/tomli`` is the library from which it was
made, so that a file means the same, and problems have the same words, on all of them.
"""

import sys

if sys.version_info >= (3, 11):
    from tomllib import TOMLDecodeError, loads
else:
    from seawall._vendor.tomli import TOMLDecodeError, loads

__all__ = ["TOMLDecodeError", "loads"]
