# SPDX-License-Identifier: Apache-2.0
"""Pages, text and JSON of every verb; the schemas.  No machine."""
