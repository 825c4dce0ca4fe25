# SPDX-License-Identifier: Apache-2.0
"""Packet sockets and their rings, in every network namespace."""
