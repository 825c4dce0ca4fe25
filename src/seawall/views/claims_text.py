# SPDX-License-Identifier: Apache-2.0
"""Claims as text: who holds uncounted memory, what is left, and who is only a suspect."""

from collections.abc import Iterator, Sequence
from typing import Final

from seawall.accounts.claim import RESIDUAL, Claim, ClaimClass, Suspect
from seawall.accounts.claim_joining.claim_owner import likely_bytes
from seawall.accounts.claims.claims import Claims
from seawall.views.terminal import Console
from seawall.words import size

EXPLAINED: Final = 4
"""With source and what to do; the next ones are a line each."""
SHOWN: Final = 10
_INSIDE_SHOWN: Final = 6
_SUSPECTS_SHOWN: Final = 6
_SMALL_BYTES: Final = 1 << 20
_KINDS: Final[dict[ClaimClass, str]] = {
    "surface": "buffers of a driver", "pinned": "pinned", "managed": "managed by a driver",
    "ring": "ring buffers", "socket": "data in sockets", "pool": "pool of free pages",
    "unified": "unified device memory", "hugetlb": "hugetlb", "vmalloc": "vmalloc",
    "dying": "left behind", "file_system": "file system", "unknown": "of an unknown kind",
}  # fmt: skip
_CONFIDENCES: Final = {
    "exact": "exact", "traced": "traced", "bound": "upper bound", "estimate": "estimate",
}  # fmt: skip


def holders(claims: Claims, residual_bytes: int, paper: Console) -> Iterator[str]:
    """Who holds uncounted memory; then what is in other lines and worth a name."""
    outside = [claim for claim in claims.claims if claim.within == RESIDUAL]
    inside = [claim for claim in claims.claims if claim.within != RESIDUAL]
    if outside:
        yield ""
        yield paper.paint("Who holds uncounted memory", "bold")
        yield from listed(outside, SHOWN, EXPLAINED, paper)
    yield from _unexplained(claims, residual_bytes, paper)
    if inside:
        yield ""
        yield paper.paint("Who holds what is inside the lines above", "bold")
        yield from listed(inside, _INSIDE_SHOWN, 0, paper)


def listed(claims: Sequence[Claim], shown: int, explained: int, paper: Console) -> Iterator[str]:
    """The first ones of at least a MiB, some with source and what to do; the rest in a line."""
    large = [c for c in claims if c.most_bytes >= _SMALL_BYTES][:shown]
    advised: set[str] = set()
    for number, claim in enumerate(large):
        yield from _claim(claim, paper)
        if number < explained:
            is_new = claim.give_back not in advised
            yield from _explained(claim, claim.give_back if is_new else "as above", paper)
            advised.add(claim.give_back)
    rest = claims[len(large) :]
    if rest:
        likely = sum(likely_bytes(claim) or claim.most_bytes for claim in rest)
        yield f"  and {len(rest)} more, {size(likely)} together (--json has them)"


def _claim(claim: Claim, paper: Console) -> Iterator[str]:
    place = "" if claim.within == RESIDUAL else f" in {claim.within}"
    about = [_KINDS[claim.kind]] if _KINDS[claim.kind] != claim.within else []
    if claim.driver and claim.driver.lower() not in claim.holder.lower():
        about.append(claim.driver)
    about.append(_CONFIDENCES[claim.confidence])
    if place and claim.cgroup is not None and not claim.is_counted:
        about.append("in no cgroup's charge")
    words = f"{amount(claim)}{place}: {claim.holder} ({', '.join(about)}){_range(claim)}"
    yield from paper.wrap(words, "    ", "  ")


def _explained(claim: Claim, give_back: str, paper: Console) -> Iterator[str]:
    source = f"seen in: {claim.source}"
    yield from (paper.paint(line, "dim") for line in paper.wrap(source, "      ", "    "))
    if claim.missing:
        yield from paper.wrap(f"not told: {claim.missing}", "      ", "    ")
    if claim.give_back:
        yield from paper.wrap(f"give back: {give_back}", "      ", "    ")


def amount(claim: Claim) -> str:
    """``31.4 GiB``; ``at most 33.0 GiB`` where that is all that is known."""
    if claim.confidence == "bound":
        return f"at most {size(claim.most_bytes)}"
    return size(claim.bytes)


def _range(claim: Claim) -> str:
    """Where it says more than the number does."""
    if claim.confidence == "bound":
        return ""
    least, most = size(claim.least_bytes), size(claim.most_bytes)
    return "" if least == most == size(claim.bytes) else f", {least} to {most}"


def _unexplained(claims: Claims, residual_bytes: int, paper: Console) -> Iterator[str]:
    """What is left, and who could have it."""
    left = claims.unexplained_bytes
    if residual_bytes <= 0:
        return
    yield ""
    bounds = f"{size(claims.unexplained_least_bytes)} and {size(claims.unexplained_most_bytes)}"
    words = f"Held by nobody known: {size(left)} of {size(residual_bytes)} (between {bounds})."
    yield from paper.wrap(words)
    if not claims.suspects:
        return
    yield from paper.wrap("Suspects, for what nobody is known to hold; nothing is proved:")
    for suspect in claims.suspects[:_SUSPECTS_SHOWN]:
        yield from paper.wrap(f"{suspect_name(suspect)}: {suspect.why}", "    ", "  ")
    if len(claims.suspects) > _SUSPECTS_SHOWN:
        yield f"  and {len(claims.suspects) - _SUSPECTS_SHOWN} more (--json has them)"


def suspect_name(suspect: Suspect) -> str:
    """The workload, else its processes."""
    if suspect.workload is not None:
        return suspect.workload
    return "processes " + ", ".join(map(str, suspect.pids[:3])) if suspect.pids else suspect.driver
