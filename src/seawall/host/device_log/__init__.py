# SPDX-License-Identifier: Apache-2.0
"""What logs say of devices that cannot be had."""
