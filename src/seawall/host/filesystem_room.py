# SPDX-License-Identifier: Apache-2.0
"""How full a file system is; asked in a child of its own, for a dead server holds it for good."""

import os

from seawall.host.host import JSON


def filesystem_room(path: str) -> JSON:
    """{"blocks", "blocks_free", "files", "files_free"}: free for whoever is not root; OSError."""
    found = os.statvfs(path)
    return {
        "blocks": found.f_blocks, "blocks_free": found.f_bavail,
        "files": found.f_files, "files_free": found.f_favail,
    }  # fmt: skip
