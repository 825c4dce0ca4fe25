# SPDX-License-Identifier: Apache-2.0
"""Whose the pages are that a trace saw being taken."""
