# SPDX-License-Identifier: Apache-2.0
"""Of each JSON document: which fields of which dataclass stand in it.  Tables, no loops."""
