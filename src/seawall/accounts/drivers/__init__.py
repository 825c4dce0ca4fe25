# SPDX-License-Identifier: Apache-2.0
"""Memory of drivers by who has their files open, and the names that people know them by."""
