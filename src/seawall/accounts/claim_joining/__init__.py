# SPDX-License-Identifier: Apache-2.0
"""Claims of several sources about the same pages made one: overlaps, owners, bounds."""
