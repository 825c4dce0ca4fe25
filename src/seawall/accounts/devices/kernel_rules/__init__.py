# SPDX-License-Identifier: Apache-2.0
"""What the kernel itself allows a cgroup: the v1 list, the v2 programs."""
