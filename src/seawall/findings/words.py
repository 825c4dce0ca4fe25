# SPDX-License-Identifier: Apache-2.0
"""Numbers in words, for headlines: see :mod:`seawall.words`, which accounts may use too."""

from seawall.words import count as count  # noqa: PLC0414 - its home for findings and views
from seawall.words import duration as duration  # noqa: PLC0414 - as above
from seawall.words import percent as percent  # noqa: PLC0414 - as above
from seawall.words import size as size  # noqa: PLC0414 - as above
