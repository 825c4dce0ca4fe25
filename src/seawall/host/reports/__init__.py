# SPDX-License-Identifier: Apache-2.0
"""Other tools' reports as a host: sos, must-gather, nvidia-bug-report."""
