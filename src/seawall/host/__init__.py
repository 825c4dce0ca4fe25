# SPDX-License-Identifier: Apache-2.0
"""Asks a machine, a bundle or a tree, and changes nothing."""
