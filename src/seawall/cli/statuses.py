# SPDX-License-Identifier: Apache-2.0
"""Exit statuses, each in one place.  They are part of the contract: see the README."""

FIRES = 10
"""Only with ``--fail-on``."""
BLIND = 11
"""Only with ``--fail-on``."""
NOT_WHOLE = 1
"""Of ``seawall cluster quarantine`` and its like: a write was refused, a field was left, a guard
was not reached; the answer says which."""
USAGE = 2
"""Unusable words or input, or a machine that did not answer with a whole document."""
BUG = 70
BROKEN_PIPE = 141
NPD_OK = 0
NPD_PROBLEM = 1
NPD_UNKNOWN = 2
