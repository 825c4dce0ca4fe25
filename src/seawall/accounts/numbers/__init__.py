# SPDX-License-Identifier: Apache-2.0
"""What each tool calls "the memory" of a container, of its processes and of the node."""
