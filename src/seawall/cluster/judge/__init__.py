# SPDX-License-Identifier: Apache-2.0
"""From deaths of nodes to the workload that kills them.  Pure: no API, no clock, no chance."""
