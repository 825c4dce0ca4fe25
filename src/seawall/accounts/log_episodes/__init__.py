# SPDX-License-Identifier: Apache-2.0
"""What logs tell of the last minutes, as episodes: kills, troubles of the node, the guard."""
