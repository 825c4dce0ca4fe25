# SPDX-License-Identifier: Apache-2.0
"""The probe ``page_trace``: who takes pages that no cgroup counts, through tracefs."""
