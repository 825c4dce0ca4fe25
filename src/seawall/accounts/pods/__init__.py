# SPDX-License-Identifier: Apache-2.0
"""The rows of ``seawall pods``: what each workload holds, and its kills."""
