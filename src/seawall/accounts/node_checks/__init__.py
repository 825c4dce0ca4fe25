# SPDX-License-Identifier: Apache-2.0
"""Is a node fit for jobs: one small module a check, over files of the kernel and of drivers."""
