# SPDX-License-Identifier: Apache-2.0
"""What logs say of kills, hangs and evictions, read from their end."""
