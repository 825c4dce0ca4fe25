# SPDX-License-Identifier: Apache-2.0
"""The node daemon: its loop, processes and configuration.  Standard library only."""
