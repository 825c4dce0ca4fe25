# SPDX-License-Identifier: Apache-2.0
"""What ``seawall top`` shows: workloads and the node's headroom, from one second to the next."""
