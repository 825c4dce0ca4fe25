# SPDX-License-Identifier: Apache-2.0
"""Claims: who holds what no line of the ledger explains, with the evidence for it.

Every module of ``claim_sources/`` is one kind of evidence; adding the file is all the
registration.  Here their answers become one: the same bytes are not added twice
(``claim_joining/join.py``), and nothing exceeds uncounted memory or the ledger line that it is in.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from seawall.accounts.claim import RESIDUAL, Claim, SourceClaims, Suspect
from seawall.accounts.claim_joining.claim_bounds import within_residual
from seawall.accounts.claim_joining.claim_owner import likely_bytes
from seawall.accounts.claim_joining.join import join
from seawall.accounts.claim_joining.shared_mappings import fit_once
from seawall.accounts.node_memory.ledger import Ledger
from seawall.host.host import Unread
from seawall.readings.base import Base
from seawall.readings.snapshot import Snapshot, needs_of

COST: Final = 2
"""Every process is asked once more (``findings/rule_costs.py``)."""
Source: TypeAlias = "Callable[..., SourceClaims]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The topic: who holds uncounted memory, as far as that is known; the largest claim first."""

    claims: tuple[Claim, ...]
    suspects: tuple[Suspect, ...]
    unexplained_bytes: int
    """What is left of uncounted memory when what is likely of every claim is taken off; a bound
    explains nothing.  Not below zero."""
    unexplained_least_bytes: int
    """When every claim is as large as it can be, and the ledger's error is for it."""
    unexplained_most_bytes: int
    """When only what is certain is taken off."""
    unseen: tuple[str, ...]
    unread: tuple[Unread, ...]

    def refusals(self) -> list[Unread]:
        """What sources were kept from reading: then more may be held than is claimed.  What this
        kernel does not have is not meant.
        """
        return [one for one in self.unread if one.why not in ("absent", "vanished")]

    def of_residual(self) -> list[Claim]:
        """Those whose bytes are in no line of the ledger."""
        return within_residual(self.claims)


@cache
def load_sources() -> tuple[Source, ...]:
    """The ``claims`` function of each module in ``claim_sources``, by name of module."""
    import pkgutil  # noqa: PLC0415 - the guard's watcher names its sources itself
    from importlib import import_module  # noqa: PLC0415

    import seawall.accounts.claim_sources as home  # noqa: PLC0415 - its modules import ours

    modules = pkgutil.iter_modules(home.__path__, home.__name__ + ".")
    return tuple(import_module(module.name).claims for module in modules)


def account(ledger: Ledger, base: Base | Unread, snapshot: Snapshot) -> Claims:
    """Ask every source, and join what they say."""
    found: list[SourceClaims] = []
    unread: list[Unread] = []
    for source in load_sources():
        answer = ask_source(source, snapshot)
        if isinstance(answer, Unread):
            unread.append(answer)
        else:
            found.append(answer)
    return joined(found, ledger, base, tuple(dict.fromkeys(unread)))


def joined(
    found: Sequence[SourceClaims],
    ledger: Ledger,
    base: Base | Unread,
    unread: tuple[Unread, ...] = (),
) -> Claims:
    """One account of what all sources say; their order does not matter."""
    claims = sorted(_held_against(join(found), ledger, base), key=_largest_first)
    of_residual = within_residual(claims)
    residual, error = max(0, ledger.residual_bytes), ledger.residual_error_bytes
    likely = sum(map(likely_bytes, of_residual))
    most = sum(claim.most_bytes for claim in of_residual)
    certain = sum(claim.least_bytes for claim in of_residual)
    upper = max(0, ledger.residual_bytes + error)
    return Claims(
        claims=tuple(claims),
        suspects=tuple(sorted(_suspects(found), key=_suspect_order)),
        unexplained_bytes=max(0, residual - likely),
        unexplained_least_bytes=max(0, residual - error - most),
        unexplained_most_bytes=max(0, upper - certain, residual - likely),
        unseen=tuple(sorted({words for answer in found for words in answer.unseen})),
        unread=unread,
    )


def ask_source(source: Source, snapshot: Snapshot) -> SourceClaims | Unread:
    """What a source says of what it asks for; the first Unread that it cannot do without."""
    arguments: dict[str, Any] = {}
    for name, need, copes in needs_of(source):
        value = snapshot.get(need)
        if isinstance(value, Unread) and not copes:
            return value
        arguments[name] = value
    return source(**arguments)


def _held_against(claims: Sequence[Claim], ledger: Ledger, base: Base | Unread) -> Iterator[Claim]:
    """No more than the ledger has.  A kernel without such a line says nothing against it,
    but that it is no more than there is.
    """
    most = ledger.residual_bytes + ledger.residual_error_bytes
    grown = None
    if isinstance(base, Base):
        grown = most - base.residual_bytes + base.residual_error_bytes
    for within in sorted({claim.within for claim in claims}):
        members = [claim for claim in claims if claim.within == within]
        if within == RESIDUAL:
            fitted = fit_once(members, most, grown)
        else:
            line = ledger.line(within)
            fitted = fit_once(members, ledger.total_bytes if line is None else line.bytes)
        yield from (claim for claim in fitted if claim.most_bytes > 0)


def _suspects(found: Sequence[SourceClaims]) -> Iterator[Suspect]:
    """Each once, whichever source told."""
    told: set[Suspect] = set()
    for suspect in (one for answer in found for one in answer.suspects):
        if suspect not in told:
            told.add(suspect)
            yield suspect


def _largest_first(claim: Claim) -> tuple[object, ...]:
    return (
        claim.within != RESIDUAL, -likely_bytes(claim), -claim.most_bytes, claim.holder,
        claim.kind, claim.source,
    )  # fmt: skip


def _suspect_order(suspect: Suspect) -> tuple[object, ...]:
    return -len(suspect.pids), suspect.workload or "", suspect.driver, suspect.pids, suspect.why
