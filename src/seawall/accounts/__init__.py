# SPDX-License-Identifier: Apache-2.0
"""Pure sums over readings: ledger, claims, workloads, OOM.  No sentences, no machine."""
