# SPDX-License-Identifier: Apache-2.0
"""Memory of the node: the ledger, its headroom, and why it is short."""
