# SPDX-License-Identifier: Apache-2.0
"""Rules about memory of the kernel and its drivers."""
