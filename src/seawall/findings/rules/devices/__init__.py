# SPDX-License-Identifier: Apache-2.0
"""Rules about devices that containers were promised."""
