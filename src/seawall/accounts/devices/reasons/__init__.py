# SPDX-License-Identifier: Apache-2.0
"""Which layer refuses a device, and why."""
