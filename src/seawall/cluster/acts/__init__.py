# SPDX-License-Identifier: Apache-2.0
"""What people do to a cluster by ``seawall cluster``: each write named, each with its way back."""
