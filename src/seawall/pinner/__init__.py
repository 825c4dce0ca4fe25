# SPDX-License-Identifier: Apache-2.0
"""Programs of the node's daemons, kept in memory within a budget."""
