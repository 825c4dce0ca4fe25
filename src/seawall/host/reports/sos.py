# SPDX-License-Identifier: Apache-2.0
"""A sos report (sosreport 3 and 4): ``sos_commands/PLUGIN/COMMAND``, /proc, /sys and /var as they
are.  The plugin "general" of version 3 became "host" and "date" in 4.
"""

from typing import Final

from seawall.host.host import Unread
from seawall.host.live import LiveHost
from seawall.host.reports.report_host import SupportReport, date_in, files_in, first_line

MARK: Final = "sos_commands/"
_HOME: Final = "/sos_commands"
_NAMES: Final = (
    f"{_HOME}/host/hostname", f"{_HOME}/general/hostname", "/hostname", "/etc/hostname",
    f"{_HOME}/host/hostname_-f",
)  # fmt: skip
_DATES: Final = (
    f"{_HOME}/date/date_--utc", f"{_HOME}/date/date", f"{_HOME}/general/date", "/date",
    f"{_HOME}/host/uptime", "/uptime",
)  # fmt: skip
_UNAMES: Final = (f"{_HOME}/kernel/uname_-a", "/uname")


def report_of(tree: LiveHost) -> SupportReport | None:
    """The sos report that this tree is; None for a tree of another tool."""
    names = tree.names("/")
    if isinstance(names, Unread) or MARK not in names:
        return None
    # Linux NODE RELEASE #1 SMP ... MACHINE GNU/Linux
    uname = (first_line(tree, _UNAMES) or "").split()
    is_uname = len(uname) > 3 and uname[0] == "Linux"
    return SupportReport(
        tool="a sos report",
        node_name=first_line(tree, _NAMES) or (uname[1] if is_uname else None),
        release=uname[2] if is_uname else None,
        machine=uname[-2] if is_uname else None,
        taken_at_unix_seconds=date_in(tree, _DATES),
        kernel_logs=(
            *files_in(tree, f"{_HOME}/kernel", "dmesg(_-T)?"),
            *files_in(tree, f"{_HOME}/general", "dmesg.*"),
            # Without the rotated ones of earlier boots, and what lists or measures the journal.
            *files_in(tree, f"{_HOME}/logs", "journalctl_--no-pager(?!.*(--boot_-|list|disk)).*"),
            *files_in(tree, "/var/log", "dmesg|kern.log|messages|syslog"),
        ),
    )
