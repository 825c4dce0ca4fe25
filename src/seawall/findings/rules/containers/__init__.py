# SPDX-License-Identifier: Apache-2.0
"""Rules about containers and pods."""
