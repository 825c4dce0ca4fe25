# SPDX-License-Identifier: Apache-2.0
"""Rules about settings, judged by ``why --audit`` only."""
