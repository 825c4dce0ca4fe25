# SPDX-License-Identifier: Apache-2.0
"""What Seawall changed on objects that are not its own, and how that is undone."""
