# SPDX-License-Identifier: Apache-2.0
"""What changes between two looks of ``gpu --watch``."""
