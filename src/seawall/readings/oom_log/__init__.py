# SPDX-License-Identifier: Apache-2.0
"""OOM reports of the kernel, in whatever a log wraps them."""
