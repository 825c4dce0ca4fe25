# SPDX-License-Identifier: Apache-2.0
"""Who holds uncounted memory, and the inventory of workloads, kept for the guard."""
