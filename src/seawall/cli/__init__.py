# SPDX-License-Identifier: Apache-2.0
"""One module for each verb: its options and one call."""
