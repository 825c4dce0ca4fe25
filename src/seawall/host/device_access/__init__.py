# SPDX-License-Identifier: Apache-2.0
"""Whether a process may use a device, found out by trying as that process."""
