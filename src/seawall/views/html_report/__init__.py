# SPDX-License-Identifier: Apache-2.0
"""The page of ``seawall report --html``: one file for the ticket; here stand its sections, charts
and style, and nothing that reads a machine.
"""
