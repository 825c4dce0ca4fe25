# SPDX-License-Identifier: Apache-2.0
"""What the guard writes and shows: journal, status, kernel log, metrics, commands."""
