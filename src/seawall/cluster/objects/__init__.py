# SPDX-License-Identifier: Apache-2.0
"""The cluster's objects of ours, from and to plain JSON.  What is read may be hostile."""
