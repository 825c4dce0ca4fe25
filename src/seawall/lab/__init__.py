# SPDX-License-Identifier: Apache-2.0
"""Reproducers: the incidents on demand, in a cgroup with a limit of its own."""
