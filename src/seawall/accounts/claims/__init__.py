# SPDX-License-Identifier: Apache-2.0
"""Who holds uncounted memory: the answer of all sources, and what it adds to a charge."""
