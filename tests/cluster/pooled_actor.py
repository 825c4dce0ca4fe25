"""The actor where ten pools share one cluster and stand for ten: nodes that fall silent in all of
them together are no storm.  ``python -m tests.cluster.pooled_actor cluster controller --act ...``
"""

import sys

from seawall.cli.main import main
from seawall.cluster.actor import action_brakes

POOLS = 10

if __name__ == "__main__":
    action_brakes.STORM_LEAST *= POOLS  # type: ignore[misc]
    sys.exit(main(sys.argv[1:]))
