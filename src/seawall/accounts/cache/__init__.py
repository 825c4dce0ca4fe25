# SPDX-License-Identifier: Apache-2.0
"""The page cache by file, dirty pages by cgroup and writer, programs whose code was read back."""
