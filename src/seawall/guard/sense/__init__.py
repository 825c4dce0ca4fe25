# SPDX-License-Identifier: Apache-2.0
"""What the guard reads each tick, with few files open and nothing that can wait."""
