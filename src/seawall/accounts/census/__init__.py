# SPDX-License-Identifier: Apache-2.0
"""Page frames counted one by one (/proc/kpageflags), beside the ledger."""
