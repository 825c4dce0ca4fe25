# SPDX-License-Identifier: Apache-2.0
"""Processes, pipes and locks of our own.  What is asked or answered is no business of this room."""
