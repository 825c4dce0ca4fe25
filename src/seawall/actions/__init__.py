# SPDX-License-Identifier: Apache-2.0
"""Orders in, outcomes out: the one room that changes a machine; the guard's changes journalled."""
