# SPDX-License-Identifier: Apache-2.0
"""Devices of containers: what was promised, what five layers allow, what mends it."""
