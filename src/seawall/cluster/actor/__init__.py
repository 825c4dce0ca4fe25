# SPDX-License-Identifier: Apache-2.0
"""The actor: what is done about a workload that kills nodes, lever by lever, and taken back."""
