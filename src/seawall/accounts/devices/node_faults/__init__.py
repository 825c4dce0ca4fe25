# SPDX-License-Identifier: Apache-2.0
"""Faults of the node that take devices away from its containers."""
