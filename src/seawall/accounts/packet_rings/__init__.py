# SPDX-License-Identifier: Apache-2.0
"""Whose the rings of packet sockets are, and where their pages lie."""
