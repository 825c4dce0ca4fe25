# SPDX-License-Identifier: Apache-2.0
"""What ``seawall cache`` could not see of the page cache, and what would let it."""

from collections.abc import Iterator, Sequence

from seawall.accounts.cache.page_cache import CacheTable
from seawall.findings.blindness import NotSeen, unread_rows
from seawall.host.host import Unread
from seawall.readings.kernel import Kernel
from seawall.readings.snapshot import Snapshot
from seawall.words import count

_FOLLOWS = ("SYS_ADMIN", "CHECKPOINT_RESTORE")


def unseen(snapshot: Snapshot, table: CacheTable, missed: Sequence[Unread]) -> list[NotSeen]:
    """Topics and questions that failed, then what is missing in the table."""
    kernel = snapshot.get(Kernel)
    rights = None if isinstance(kernel, Unread) else kernel.reader_capabilities
    is_short = rights is not None and not set(_FOLLOWS) & set(rights)
    files = table.unread
    refused = [one for one in files if one.why == "refused"]
    rows = unread_rows([snapshot], [*missed, *(one for one in files if one not in refused)])
    if is_short:
        rows.append(_not_followed(refused))
    elif refused:
        what = f"{count(len(refused))} files or folders, first {refused[0].path}"
        needs = "root on the host, or CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
        rows.append(NotSeen(what, refused[0].detail or "refused", needs))
    rows.extend(_of_table(table))
    return rows


def _not_followed(refused: Sequence[Unread]) -> NotSeen:
    first = f" ({count(len(refused))} here, first {refused[0].path})" if refused else ""
    return NotSeen(
        f"files that are mapped and deleted, or hidden by another mount{first}",
        "the links in /proc/PID/map_files may not be followed",
        "root on the host, or CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE",
    )


def _of_table(table: CacheTable) -> Iterator[NotSeen]:
    unknown = table.totals.unknown_files
    if unknown:
        yield NotSeen(
            f"how much of {count(unknown)} files is cached",
            "the kernel tells only their owner (mincore would answer: all of it)",
            "root on the host, or CAP_FOWNER",
        )
    lone = [file for file in table.files.values() if file.overlay is False]
    if lone:
        yield NotSeen(
            f"the layers' files of {count(len(lone))} files on overlayfs, first {lone[0].path}",
            "the overlay's options do not lead to them; asked by mincore, each mount by itself",
            "root on the host that mounted it (in a container: --root /host)",
        )
