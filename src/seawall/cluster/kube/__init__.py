# SPDX-License-Identifier: Apache-2.0
"""The Kubernetes API as the cluster's half needs it: requests, watches of slim rows, a lease."""
