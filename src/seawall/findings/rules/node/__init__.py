# SPDX-License-Identifier: Apache-2.0
"""Rules about the node as a whole."""
