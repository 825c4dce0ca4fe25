# SPDX-License-Identifier: Apache-2.0
"""Unary gRPC calls over a unix socket: kubelet and container runtimes."""
