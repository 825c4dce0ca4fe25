# SPDX-License-Identifier: Apache-2.0
"""The file of the black box: frames, ring, and what was known at a moment."""
