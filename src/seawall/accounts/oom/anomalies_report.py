# SPDX-License-Identifier: Apache-2.0
"""What is wrong about the report itself: cut, or saying what is not so."""

from collections.abc import Iterator

from seawall.accounts.oom.anomaly import Anomaly
from seawall.accounts.oom.report_facts import ReportFacts


def report_anomalies(facts: ReportFacts) -> Iterator[Anomaly]:
    """What a reader of the raw log may be misled by."""
    report = facts.report
    if report.panic:
        yield Anomaly("panic", _panic(facts))
    if report.kind == "memcg" and report.constraint == "CONSTRAINT_NONE":
        yield Anomaly(
            "constraint-none",
            "The log says CONSTRAINT_NONE, as for the whole machine, but names the cgroup whose "
            "limit was hit: Linux 5.0 to 5.2 print this wrongly. It is a cgroup's kill.",
        )
    if report.is_headless or report.is_cut:
        yield Anomaly("cut-report", _missing(facts))


def _panic(facts: ReportFacts) -> str:
    kills = facts.report.kills
    if any(kill.pid == 1 for kill in kills):
        return "init (pid 1) was among the killed, and without it the kernel stops the machine."
    if kills:
        return "After the kill the kernel stopped the machine."
    why = (
        "nobody was left to kill"
        if facts.report.no_killable
        else ("vm.panic_on_oom is set, or nobody was left to kill")
    )
    if facts.report.is_headless:
        return f"The kernel stopped the machine: {why}. Kills may stand before this report."
    return f"The kernel stopped the machine instead of killing somebody: {why}."


def _missing(facts: ReportFacts) -> str:
    report = facts.report
    missing = []
    if report.is_headless:
        missing.append("the first line (who asked, and for what)")
    if not report.tasks:
        missing.append("the table of processes")
    if report.kind == "memcg" and report.memory is None:
        missing.append("the limit")
    elif report.kind != "memcg" and (report.mem_info is None or not report.mem_info.zones):
        missing.append("the zones")
    if not report.kills and not report.no_killable and not report.panic:
        missing.append("the kill")
    is_alone = not (report.tasks or report.mem_info or report.memory)
    if report.is_headless and report.kills and is_alone:
        return (
            "The log shows the kill alone. The kernel prints at most ten reports whole in five "
            "seconds; or the log is cut."
        )
    words = f"Missing: {', '.join(missing)}." if missing else "A part of it is missing."
    return f"This report is not whole. {words} What is said here holds for the rest."
