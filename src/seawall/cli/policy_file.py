# SPDX-License-Identifier: Apache-2.0
"""``/etc/seawall/rules.toml``: the format is told in ``findings/policy.py``."""

import datetime as dt
from typing import Any, Final

from seawall.findings.policy import Mute, Policy
from seawall.findings.rule import FOUND, load_rules
from seawall.formats import toml
from seawall.host.input_file import open_input
from seawall.problems import UsageProblem

PATH: Final = "/etc/seawall/rules.toml"


def load_policy(path: str | None) -> Policy:
    """The owner's policy; an empty one when no file was named and none exists."""
    try:
        with open_input(path or PATH, "mutes and thresholds") as file:
            text = file.read(1 << 20)
    except FileNotFoundError:
        if path is None:
            return Policy()
        raise UsageProblem(f"{path}: no such file; expected mutes and thresholds") from None
    except OSError as error:
        if path is None:
            return Policy()  # an ordinary user: the owner's file is not for them
        raise UsageProblem(f"{path}: {error.strerror}") from error
    return parse_policy(text, path or PATH, dt.datetime.now(dt.timezone.utc).date())


def parse_policy(text: bytes, path: str, today: dt.date) -> Policy:
    """The policy in ``text``; UsageProblem with place and mend for anything unknown."""
    try:
        document = toml.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{path}: not TOML: {error}") from error
    load_rules()
    mutes: list[Mute] = []
    expired: list[Mute] = []
    thresholds: dict[str, dict[str, int | float]] = {}
    for rule_id, section in document.items():
        if rule_id not in FOUND:
            raise UsageProblem(f"{path}: [{rule_id}]: no such rule; see seawall rules list")
        if not isinstance(section, dict):
            raise UsageProblem(f"{path}: {rule_id}: expected a section [{rule_id}]")
        unknown = set(section) - {"mute", "reason", "until", "workload", "thresholds"}
        if unknown:
            raise UsageProblem(f"{path}: [{rule_id}] {min(unknown)}: no such key")
        if section.get("mute") is True:
            mute, last_day = _mute(rule_id, section, path)
            (mutes if today <= last_day else expired).append(mute)
        elif "mute" in section and section["mute"] is not False:
            raise UsageProblem(f"{path}: [{rule_id}] mute: expected true or false")
        if "thresholds" in section:
            thresholds[rule_id] = _thresholds(rule_id, section["thresholds"], path)
    return Policy(mutes=tuple(mutes), thresholds=thresholds, expired=tuple(expired))


def _mute(rule_id: str, section: dict[str, Any], path: str) -> tuple[Mute, dt.date]:
    reason, until = section.get("reason"), section.get("until")
    if not isinstance(reason, str) or not reason.strip():
        raise UsageProblem(f'{path}: [{rule_id}] a mute needs reason = "..."')
    if type(until) is not dt.date:
        raise UsageProblem(f"{path}: [{rule_id}] a mute needs until = YYYY-MM-DD")
    workload = section.get("workload", "*")
    if not isinstance(workload, str):
        raise UsageProblem(f'{path}: [{rule_id}] workload: expected "namespace/*" or the like')
    mute = Mute(rule_id=rule_id, reason=reason, until=until.isoformat(), workload=workload)
    return mute, until


def _thresholds(rule_id: str, moved: object, path: str) -> dict[str, int | float]:
    if not isinstance(moved, dict):
        raise UsageProblem(f"{path}: [{rule_id}] thresholds: expected [{rule_id}.thresholds]")
    known = FOUND[rule_id].thresholds
    found: dict[str, int | float] = {}
    for name, value in moved.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise UsageProblem(f"{path}: [{rule_id}.thresholds] {name}: it has {names}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
            raise UsageProblem(f"{path}: [{rule_id}.thresholds] {name}: expected a number >= 0")
        found[name] = value
    return found
