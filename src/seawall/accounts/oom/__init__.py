# SPDX-License-Identifier: Apache-2.0
"""What follows from an OOM report: who, why, what was short, what to do."""
