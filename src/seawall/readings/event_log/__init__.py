# SPDX-License-Identifier: Apache-2.0
"""Lines of logs that tell of kills, hangs, evictions: what each line says."""
