# SPDX-License-Identifier: Apache-2.0
"""``--swarm 1280x8MiB,uid=0``: the words for processes that are only described."""

import re
from typing import Final

from seawall.accounts.oom.swarm import Swarm
from seawall.lab.sizes import bytes_of
from seawall.problems import UsageProblem

_SWARM: Final = re.compile(r"([1-9][0-9]{0,6})x([^,x]{1,20})((?:,[a-z]+=-?[0-9]{1,10})*)")
_EXPECTED: Final = "expected COUNTxSIZE[,uid=N][,adj=N], e.g. 1280x8MiB or 80x128MiB,uid=0"
_SIZE_MOST: Final = 1 << 50


def swarm_of(text: str) -> Swarm:
    """One of them; UsageProblem with the form."""
    match = _SWARM.fullmatch(text.replace(" ", ""))
    if match is None:
        raise UsageProblem(f"--swarm {text[:60]!r}: {_EXPECTED}")
    options = dict(part.split("=") for part in match[3].split(",")[1:])
    uid, adj = int(options.pop("uid", 1000)), int(options.pop("adj", 0))
    if options or uid < 0 or not -1000 <= adj <= 1000:
        raise UsageProblem(f"--swarm {text[:60]!r}: {_EXPECTED}, adj from -1000 to 1000")
    return Swarm(int(match[1]), swarm_size("--swarm", match[2]), uid, adj)


def swarm_size(option: str, text: str) -> int:
    """Bytes; UsageProblem that names the option."""
    try:
        size = bytes_of(text)
    except ValueError as problem:
        raise UsageProblem(f"{option}: {problem}") from None
    if size == 0 and option == "--limit":
        raise UsageProblem("--limit: expected a size, e.g. 8GiB")
    if size > _SIZE_MOST:
        raise UsageProblem(f"{option} {text[:60]!r}: at most 1024TiB")
    return size
