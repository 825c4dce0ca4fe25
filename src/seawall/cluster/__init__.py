# SPDX-License-Identifier: Apache-2.0
"""The cluster's half: which nodes died, and which workload was on those that did."""
