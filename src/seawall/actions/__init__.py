# SPDX-License-Identifier: Apache-2.0
"""Orders in, outcomes out: the one room that changes a machine, journalled before it is done."""
