# SPDX-License-Identifier: Apache-2.0
"""What containers meet at their limits in a window: hits, refaults, OOM kills, no progress."""
