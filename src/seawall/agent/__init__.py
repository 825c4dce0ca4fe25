# SPDX-License-Identifier: Apache-2.0
"""The node's agent: what guard and black box say of this node, told to the API server."""
