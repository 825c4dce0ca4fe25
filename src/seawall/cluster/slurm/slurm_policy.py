# SPDX-License-Identifier: Apache-2.0
"""``/etc/seawall/slurm-controller.toml``: whom never to suspect, what may be done, what stops it.

Without a word of anybody the controller tells what it would do, and does nothing.
"""

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from seawall.formats import toml
from seawall.problems import UsageProblem

Approval = Literal["observe", "approve", "auto"]
"""observe: nobody is held; approve: whom a person names; auto: whom the judge convicts."""
APPROVALS: Final = ("observe", "approve", "auto")
_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class HoldBrakes:
    """Bounds of what the controller does by itself."""

    nodes_least: int = 2
    """Distinct nodes that died with a job; nobody may set it lower than two."""
    quarantines_per_hour: int = 3
    quarantines_per_day: int = 10
    held_jobs_most: int = 500
    held_jobs_share: float = 0.02
    """Of all jobs, as squeue lists them; ten at least, and the smaller of the two bounds holds."""
    view_age_seconds: float = 90.0
    """Since slurmctld's last answer."""
    approval_above_nodes: int = 8
    """A running job of more nodes is held only with a person's word."""


@dataclass(frozen=True, slots=True)
class SlurmPolicy:
    """All that an administrator sets."""

    dry_run: bool = True
    approval: Approval = "approve"
    requeuehold: bool = False
    """Whether running jobs may be ended and held."""
    hold_seconds: float = _DAY
    """A quarantine ends by itself, and its jobs are released."""
    protected_users: frozenset[str] = frozenset({"root"})
    protected_accounts: frozenset[str] = frozenset()
    false_per_thousand_node_years: float = 0.1
    watched_since_seconds: float | None = None
    """Since when no node has died without a known cause, by the administrator's word."""
    evidence: str = ""
    """Folder of the records that nodes left; empty: none is read."""
    accounts: Mapping[str, Approval] = field(default_factory=dict)
    """What holds for one account instead of ``approval``."""
    metrics_address: str = ""
    """ADDRESS:PORT of /metrics and /healthz; empty: there are none."""
    brakes: HoldBrakes = HoldBrakes()

    def approval_of(self, account: str) -> Approval:
        """Who decides about its jobs."""
        return self.accounts.get(account, self.approval)

    def protection_of(self, user: str, account: str) -> str:
        """Why their jobs are never held; empty: they may be."""
        if user in self.protected_users:
            return f"user {user} is protected (protected_users of the policy)"
        if account in self.protected_accounts:
            return f"account {account} is protected (protected_accounts of the policy)"
        return ""


def slurm_policy(text: bytes, path: str) -> SlurmPolicy:
    """UsageProblem: what is wrong, and where."""
    try:
        document = toml.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise UsageProblem(f"{path}: not TOML: {error}") from error
    policy = SlurmPolicy()
    for key, value in document.items():
        if key == "brakes":
            policy = replace(policy, brakes=_brakes(value, path))
        elif key == "accounts":
            policy = replace(policy, accounts=_accounts(value, path))
        elif key in _KEYS:
            attribute, read = _KEYS[key]
            try:
                policy = replace(policy, **{attribute: read(value)})
            except ValueError as problem:
                raise UsageProblem(f"{path}: {key}: {problem}") from None
        else:
            known = ", ".join(sorted([*_KEYS, "accounts", "brakes"]))
            raise UsageProblem(f"{path}: {key}: no such key; there are {known}")
    return policy


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")  # noqa: TRY004 - one problem for all
    return value


def _approval(value: Any) -> str:
    if value not in APPROVALS:
        raise ValueError(f"expected one of {', '.join(APPROVALS)}")
    return str(value)


def _names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError("expected a list of names")
    return frozenset(value)


def _folder(value: Any) -> str:
    if not isinstance(value, str) or (value and not value.startswith("/")) or "\0" in value:
        raise ValueError("expected a whole path")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a word")  # noqa: TRY004 - one problem for all
    return value


def _moment(value: Any) -> float:
    if isinstance(value, dt.datetime):
        at = value if value.tzinfo else value.replace(tzinfo=dt.timezone.utc)
        return at.timestamp()
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day, tzinfo=dt.timezone.utc).timestamp()
    raise ValueError("expected a day or a time, 2026-11-01 say")


def _number(least: float, most: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("expected a number")  # noqa: TRY004 - one problem for all
        if not least <= value <= most:
            raise ValueError(f"expected {least:g} to {most:g}")
        return float(value)

    return read


def _hours(value: Any) -> float:
    return _number(0.5, 168.0)(value) * 3600.0


_KEYS: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "dry_run": ("dry_run", _flag),
    "approval": ("approval", _approval),
    "requeuehold": ("requeuehold", _flag),
    "hold_hours": ("hold_seconds", _hours),
    "protected_users": ("protected_users", _names),
    "protected_accounts": ("protected_accounts", _names),
    "false_per_thousand_node_years": ("false_per_thousand_node_years", _number(0.001, 1000.0)),
    "evidence": ("evidence", _folder),
    "watched_since": ("watched_since_seconds", _moment),
    "metrics_address": ("metrics_address", _word),
}
_BRAKES: Final[Mapping[str, tuple[type, float, float]]] = {
    "nodes_least": (int, 2, 1000),
    "quarantines_per_hour": (int, 0, 1000),
    "quarantines_per_day": (int, 0, 1000),
    "held_jobs_most": (int, 0, 1_000_000),
    "held_jobs_share": (float, 0.0, 1.0),
    "view_age_seconds": (float, 5.0, 600.0),
    "approval_above_nodes": (int, 0, 1_000_000),
}


def _brakes(value: Any, path: str) -> HoldBrakes:
    if not isinstance(value, dict):
        raise UsageProblem(f"{path}: brakes: expected a section [brakes]")
    numbers: dict[str, Any] = {}
    for key, one in value.items():
        if key not in _BRAKES:
            raise UsageProblem(f"{path}: [brakes] {key}: no such key")
        kind, least, most = _BRAKES[key]
        try:
            numbers[key] = kind(_number(least, most)(one))
        except ValueError as problem:
            raise UsageProblem(f"{path}: [brakes] {key}: {problem}") from None
    return HoldBrakes(**numbers)


def _accounts(value: Any, path: str) -> dict[str, Any]:
    """``[accounts]``, ``physics = "auto"``."""
    if not isinstance(value, dict):
        raise UsageProblem(f"{path}: accounts: expected a section [accounts]")
    found = {}
    for account, word in value.items():
        try:
            found[account] = _approval(word)
        except ValueError as problem:
            raise UsageProblem(f"{path}: [accounts] {account}: {problem}") from None
    return found
