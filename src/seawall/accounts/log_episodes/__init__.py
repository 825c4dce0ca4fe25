# SPDX-License-Identifier: Apache-2.0
"""Lines of logs as episodes: OOM kills, kills from user space, troubles of the node."""
