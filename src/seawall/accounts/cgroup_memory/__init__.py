# SPDX-License-Identifier: Apache-2.0
"""Memory of each cgroup that counts it, in the sums by which tools and rules speak of it."""
