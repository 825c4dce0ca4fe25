# SPDX-License-Identifier: Apache-2.0
"""What kubelet, runtimes and CDI promised to a container."""
