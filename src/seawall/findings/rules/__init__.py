# SPDX-License-Identifier: Apache-2.0
"""The rules by subject, each one module with its cases beside it."""
