# SPDX-License-Identifier: Apache-2.0
"""What ``seawall gpu repair --do`` does to a machine, step by step, looked at again after each."""
