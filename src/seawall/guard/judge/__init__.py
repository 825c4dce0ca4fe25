# SPDX-License-Identifier: Apache-2.0
"""The policy: from what one tick saw to a verdict.  Pure; what it remembers is the policy state."""
