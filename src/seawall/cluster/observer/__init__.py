# SPDX-License-Identifier: Apache-2.0
"""Who watches the cluster's nodes, looks into their deaths, and writes down what the judge says."""
