# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_census``: page frames of the machine, all or a sample."""
