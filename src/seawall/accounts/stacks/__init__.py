# SPDX-License-Identifier: Apache-2.0
"""What tasks are doing, from their kernel stacks."""
