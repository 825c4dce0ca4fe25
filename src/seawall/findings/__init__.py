# SPDX-License-Identifier: Apache-2.0
"""Rules and what they say; which finding explains which.  No machine."""
