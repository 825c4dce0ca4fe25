# SPDX-License-Identifier: Apache-2.0
"""A container may use a device now, and something else will take it away.

The kernel allows what systemd does not know of: the next daemon-reload, which any package update
runs, writes systemd's own list again.  Or the kernel allows what the runtime was never told (a
line put into devices.allow by hand): the next update of the container takes it away.  Nothing is
broken yet, so nothing else reports it.
"""

from collections import Counter
from collections.abc import Sequence

from seawall.accounts.devices.device_table import DeviceTable
from seawall.accounts.devices.layers import UpcomingLoss
from seawall.accounts.devices.reasons.upcoming_loss import NEXT_POD, NEXT_WITH_IT
from seawall.findings.device_words import SHOWN, names, unread
from seawall.findings.finding import Evidence, Finding, blind, fires, quiet
from seawall.findings.rule import rule


@rule(
    id="SW404",
    title="Access to a device works now and is about to end",
    severity="warning",
    confirm=("seawall gpu",),
    remedy=("recreate the pod, so that the runtime and systemd are told of the device too",),
    provide="root on the host: rules of device cgroups, and systemd's files under /run/systemd",
)
def judge(table: DeviceTable) -> Sequence[Finding]:
    soon = [one for one in table.about_to_break if one.when != NEXT_POD]  # those are SW403's
    if not soon and table.unseen and not table.containers:
        missing = unread("device rules", table.unseen)
        return [blind("whether access will last is not known", *missing)]
    findings = []
    if running := [one for one in soon if one.workload is not None]:
        who = names(list(dict.fromkeys(_owner(one) for one in running)))
        findings.append(_finding(f"will be taken away from {who}", running))
    if links := [one for one in soon if one.when == NEXT_WITH_IT]:
        findings.append(_finding("without the link in /dev/char that runc needs", links, "links"))
    if files := [one for one in soon if one.workload is None and one not in links]:
        findings.append(_finding("missing or stale in a CDI file of the host", files, "CDI"))
    return findings or [quiet("no access to a device is about to end")]


def _finding(what: str, soon: list[UpcomingLoss], subject: str = "") -> Finding:
    whens = Counter(one.when for one in soon).most_common()
    when = names([f"{words} ({count})" if len(whens) > 1 else words for words, count in whens])
    plural = "s" if len(soon) > 1 else ""
    is_are = "" if not subject else " are" if plural else " is"
    return fires(
        "warning",
        f"{len(soon)} device{plural}{is_are} {what}, at {when}; nothing is refused yet",
        [
            Evidence(f"{one.device} of {_owner(one)}", one.when, "text", one.why)
            for one in soon[:SHOWN]
        ],
        outlook="Programs that have it open go on; what opens it after that is refused.",
        subject=subject,
        remedy=list(dict.fromkeys(one.remedy for one in soon))[:3],
    )


def _owner(one: UpcomingLoss) -> str:
    return one.workload.name if one.workload is not None else "the host"
