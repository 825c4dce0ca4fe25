# SPDX-License-Identifier: Apache-2.0
"""What goes into the black box, and when."""
