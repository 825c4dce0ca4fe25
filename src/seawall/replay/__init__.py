# SPDX-License-Identifier: Apache-2.0
"""The guard's decisions once more, from a recording, with its policy or another."""
