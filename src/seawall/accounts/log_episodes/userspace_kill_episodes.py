# SPDX-License-Identifier: Apache-2.0
"""Kills by OOM killers in user space: what each said it did, and what it did not say."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.log_episodes.episode import brief, episode, moments_of, runs
from seawall.accounts.log_episodes.guard_events import guard_event
from seawall.accounts.log_episodes.recent_events import RecentEvent
from seawall.readings.event_log.event_log import EventLog
from seawall.readings.event_log.sign import Sign
from seawall.words import first, size

_ONE_KILL: Final = 10.0
_LISTS_MOST: Final = 20
_MIB: Final = 1 << 20
_LOW: Final = 2.0
"""Percent of memory below which a reading of earlyoom is an event of its own."""
_SIGNALS: Final = {"31/SYS": "SIGSYS, a forbidden system call: not of memory", "9/KILL": "SIGKILL"}


def systemd_oomd(log: EventLog) -> Iterator[RecentEvent]:
    """Four lines tell of one kill: the pressure, the attempt, the mark, systemd's own."""
    told = [sign for sign in log.signs if sign.what.startswith("oomd_")]
    for run in runs(told, _ONE_KILL):
        kills = _paths(run)
        if not kills:
            yield from _oomd_without_kill(run)
        else:
            yield _oomd_kill(run, kills)


def _paths(run: Sequence[Sign]) -> list[str]:
    """What was killed, each once: a unit that systemd names is the end of one of the paths."""
    paths = list(dict.fromkeys(s.words["path"] for s in run if s.what == "oomd_mark"))
    for sign in run:
        if sign.what == "oomd_unit":
            unit = sign.words["unit"]
            if not any(path.rpartition("/")[2] == unit for path in paths):
                paths.append(unit)
    return paths


def _oomd_kill(run: Sequence[Sign], paths: Sequence[str]) -> RecentEvent:
    names = [path.rpartition("/")[2] for path in paths]
    why = next((s.words["why"] for s in run if s.what == "oomd_mark"), "")
    pids = list(dict.fromkeys(s.words["pid"] for s in run if s.what == "oomd_attempt"))
    counts = [s.words["count"] for s in run if s.what == "oomd_unit"]
    use = _oomd_use(run, paths[0])
    details = [f"killed: {path}" for path in paths[:5]]
    if counts:
        details.append(f"systemd counts {', '.join(counts)} process(es)")
    if pids:
        details.append(f"PID {first(pids, 6)}")
    if use:
        details.append(use)
    cut = " (the line is cut here)" if why[-1:] in (">", "") or why.endswith("...") else ""
    if why:
        details.append(f"why: {why.rstrip('>').rstrip()}{cut}")
    elif not any(s.what in ("oomd_pressure", "oomd_swap") for s in run):
        details.append("why is not in the lines")
    if "pressure" in why or any(s.what == "oomd_pressure" for s in run):
        details.append("its rule is about pressure, the time spent waiting for memory, not a size")
    if any("journald" in name for name in names):
        details.append("the log writer itself died: lines around this moment can be missing")
    details.append("the kernel and no limit did this; that the node was out of memory is not told")
    how_many = len(names)
    reason = ""
    if "swap" in why and "pressure" not in why:
        reason = " for swap use"
    elif "pressure" in why or (not why and any(s.what == "oomd_pressure" for s in run)):
        reason = " for memory pressure"
    who = first([brief(name) for name in names], 2)
    return episode(
        "userspace_kill", moments_of(run), f"systemd-oomd killed {who}{reason}",
        details, count=how_many, workload=paths[0], more="journalctl -u systemd-oomd",
    )  # fmt: skip


def _oomd_use(run: Sequence[Sign], path: str) -> str:
    """What the killed one used: the list of candidates names others too, and is often cut."""
    candidates = [s.words["path"] for s in run if s.what == "oomd_path"]
    considered = next((s.words["count"] for s in run if s.what == "oomd_considered"), "")
    at = ""
    for sign in run:
        at = sign.words["path"] if sign.what == "oomd_path" else at
        if sign.what == "oomd_use" and at == path:
            is_first = considered and candidates[0] == path
            of = f", the first of {considered} candidates" if is_first else ""
            return f"it used {sign.words['size']}{of}"
    return ""


def _oomd_without_kill(run: Sequence[Sign]) -> Iterator[RecentEvent]:
    if not any(s.what == "oomd_failed" for s in run):
        return
    yield episode(
        "userspace_kill", moments_of(run), "systemd-oomd wanted to kill and could not",
        ["no line says that anything ended"], more="journalctl -u systemd-oomd",
    )  # fmt: skip


def facebook_oomd(log: EventLog) -> Iterator[RecentEvent]:
    """``oomd kill:`` lines (Meta's oomd)."""
    for run in runs((s for s in log.signs if s.what == "fb_oomd_kill"), _ONE_KILL):
        paths = list(dict.fromkeys(s.words["path"] for s in run))
        rules = sorted({s.words["ruleset"] for s in run})
        details = [
            f"{s.words['path']}, {size(min(int(s.words['bytes']), 1 << 60))}" for s in run[:5]
        ]
        details += [f"by its rule {first(rules, 3)}", "the kernel did not kill here"]
        yield episode(
            "userspace_kill", moments_of(run), f"oomd killed {first(paths, 2)}", details,
            count=len(paths), workload=paths[0],
        )  # fmt: skip


# --- earlyoom -----------------------------------------------------------------------------


def earlyoom(log: EventLog) -> Iterator[RecentEvent]:
    """Signals that it sent, its own end, and a reading that was near nothing left."""
    signs = [s for s in log.signs if s.what.startswith("earlyoom_") or s.what == "killer_died"]
    sent = [s for s in signs if s.what == "earlyoom_send"]
    for run in runs(sent, _ONE_KILL):
        yield _earlyoom_sent(run, signs)
    for sign in signs:
        if sign.what == "killer_died":
            yield _killer_died(sign)
    if not sent:
        yield from _earlyoom_low(signs)


def _earlyoom_sent(run: Sequence[Sign], signs: Sequence[Sign]) -> RecentEvent:
    victims = {s.words["pid"]: s for s in run}
    last = run[-1].line.number
    gone = [s for s in signs if s.what == "earlyoom_gone" and s.line.number > run[0].line.number]
    by_pid = {s.words["pid"]: s.words["seconds"] for s in gone if "pid" in s.words}
    is_gone = any("pid" not in s.words and s.line.number > last for s in gone)
    details = []
    for pid, sign in victims.items():
        rss = sign.words.get("rss")
        held = f", {size(int(rss) * _MIB)} resident" if rss else ""
        uid = f", uid {sign.words['uid']}" if sign.words.get("uid") else ""
        how = sign.words.get("signal") or "a signal"
        end = f"; it ended {by_pid[pid]} s later" if pid in by_pid else ""
        details.append(f"{how} to {sign.words['comm']} ({pid}{uid}{held}){end}")
    near = [s for s in signs if s.line.number <= last]
    avail = next((s for s in reversed(near) if s.what == "earlyoom_avail"), None)
    limits = next((s for s in reversed(near) if s.what == "earlyoom_low"), None)
    if avail is not None:
        told = f"{avail.words['mem']} % of memory and {avail.words['swap']} % of swap were left"
        if limits is not None:
            told += f"; its limits are {limits.words['mem']} % and {limits.words['swap']} %"
        details.append(told)
    if is_gone:
        details.append("earlyoom says that it exited")
    elif not set(victims) <= set(by_pid):
        details.append("whether it ended is not in the lines: sent is not died")
    details.append("the kernel and no limit did this")
    names = [sign.words["comm"] for sign in victims.values()]
    signals = "/".join(dict.fromkeys(s.words.get("signal") or "a signal" for s in run))
    return episode(
        "userspace_kill", moments_of(run), f"earlyoom sent {signals} to {first(names, 3)}",
        details, count=len(victims), more="journalctl -u earlyoom",
    )  # fmt: skip


def _killer_died(sign: Sign) -> RecentEvent:
    unit, status = sign.words["unit"], sign.words["status"]
    meaning = _SIGNALS.get(status, "")
    dumped = ", with a core dump" if sign.words["code"] == "dumped" else ""
    why = f"status {status}" + (f" ({meaning})" if meaning else "")
    name = unit.removesuffix(".service")
    return episode(
        "userspace_kill", [sign.line.moment], f"{name} itself ended: {status}",
        [
            f"{unit} ended with {why}{dumped}",
            "from then on it guards nothing until it is started again",
        ],
        more=f"systemctl status {unit}",
    )  # fmt: skip


def _earlyoom_low(signs: Sequence[Sign]) -> Iterator[RecentEvent]:
    """It saw next to nothing left and was not to act: that is no kill, and not all is well."""
    limits = next((s for s in signs if s.what == "earlyoom_banner"), None)
    for sign in signs:
        if sign.what != "earlyoom_avail" or float(sign.words["mem"] or 100) > _LOW:
            continue
        words = sign.words
        swap = f"{words['free']} of {words['swap_total']} MiB of swap free ({words['swap']} %)"
        details = [
            f"{words['avail']} MiB of {words['total']} MiB available ({words['mem']} %), {swap}",
            "it ended nothing in these lines",
        ]
        if limits is not None and float(words["swap"] or 0) > float(limits.words["swap"] or 0):
            details.append(
                "it acts only when memory AND swap are at their limits "
                f"({limits.words['mem'].strip()} % and {limits.words['swap'].strip()} %); "
                "the swap was not"
            )
        details.append("such a reading comes seldom: what was between two of them is not told")
        yield episode(
            "userspace_kill", [sign.line.moment],
            f"earlyoom saw {words['mem']} % of memory left and did not act", details, count=0,
            more="journalctl -u earlyoom",
        )  # fmt: skip


# --- nohang -------------------------------------------------------------------------------


def nohang(log: EventLog) -> Iterator[RecentEvent]:
    """One corrective action is a page of lines."""
    told = [s for s in log.signs if s.what.startswith("nohang_")]
    for run in runs(told, _ONE_KILL):
        sent = [s for s in run if s.what == "nohang_send"]
        if sent:
            yield _nohang_action(run, sent)


def _nohang_action(run: Sequence[Sign], sent: Sequence[Sign]) -> RecentEvent:
    def word(what: str, name: str) -> str:
        return next((s.words[name] for s in run if s.what == what and s.words[name]), "")

    pid = word("nohang_victim", "pid")
    comm = word("nohang_victim", "comm") or word("nohang_name", "comm")
    path = word("nohang_path", "path")
    name = comm or path.rpartition("/")[2] or (f"PID {pid}" if pid else "a process")
    signals = list(dict.fromkeys(s.words["signal"] for s in sent))
    held = word("nohang_rss", "mib")
    swap = word("nohang_swap", "mib")
    details = [f"{path or name}" + (f", PID {pid}" if pid else ", its PID is not in the lines")]
    if held:
        details.append(f"{held} MiB resident" + (f", {swap} MiB in swap" if swap else ""))
    for what, key, words in (
        ("nohang_cgroup", "path", "in {}"),
        ("nohang_life", "life", "alive for {}"),
        ("nohang_send", "ms", "nohang took {} ms to decide"),
        ("nohang_no_answer", "seconds", "it had not reacted after {} s: asked to end, not dead"),
        ("nohang_died", "seconds", "it ended after {} s"),
        ("nohang_left", "mib", "{} MiB were available after that"),
    ):
        if value := word(what, key):
            details.append(words.format(value))
    details.append("one action of nohang, not of the kernel")
    return episode(
        "userspace_kill", moments_of(run), f"nohang sent {'/'.join(signals)} to {name}", details,
        count=1, more="journalctl -u nohang -u nohang-desktop",
    )  # fmt: skip


def talos(log: EventLog) -> Iterator[RecentEvent]:
    """Talos' own OOM controller ends whole cgroups."""
    whats = ("talos_kill", "talos_victims")
    for run in runs((s for s in log.signs if s.what in whats), _ONE_KILL):
        kills = [s for s in run if s.what == "talos_kill"]
        if not kills:
            continue
        paths = list(dict.fromkeys(s.words["path"] or "a cgroup" for s in kills))
        names = [path.rpartition("/")[2] for path in paths]
        victims = _talos_victims(run)
        whom = f": {first(victims, 3)}" if victims else ""
        yield episode(
            "userspace_kill", moments_of(run), f"Talos killed the cgroup {first(names, 2)}{whom}",
            [f"SIGKILL to every process of {path}" for path in paths[:5]]
            + ["by Talos' OOM controller, before the kernel's OOM killer"],
            count=len(paths), workload=paths[0], more="talosctl dmesg",
        )  # fmt: skip


def _talos_victims(run: Sequence[Sign]) -> list[str]:
    """Names of programs; their arguments stay in the log."""
    listed = ",".join(s.words["names"] for s in run[:_LISTS_MOST] if s.what == "talos_victims")
    commands = re.findall(r'"([^"]{1,400})(?:"|\Z)', listed)
    names = [command.split()[0].rpartition("/")[2] for command in commands if command.split()]
    return list(dict.fromkeys(name for name in names if name))


def guard_lines_told(log: EventLog) -> Iterator[RecentEvent]:
    """The guard's own lines in the kernel's log: all of one decision are one event."""
    by_decision: dict[str, list[Sign]] = {}
    for sign in log.signs:
        if sign.what == "guard_line":
            by_decision.setdefault(sign.words["decision"], []).append(sign)
    for decision, signs in by_decision.items():
        event = guard_event([s.words["words"] for s in signs], decision)
        yield episode(
            "guard_decision", moments_of(signs), event.sentence, event.details,
            count=event.count, decision=decision,
        )  # fmt: skip
