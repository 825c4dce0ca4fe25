# SPDX-License-Identifier: Apache-2.0
"""The page of ``seawall report --html`` as a file: sections, charts, style; no machine is read."""
