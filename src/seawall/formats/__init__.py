# SPDX-License-Identifier: Apache-2.0
"""Formats that several rooms read, alike on every Python that Seawall supports."""
