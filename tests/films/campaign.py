"""``python -m tests.films.campaign --films 100000 --seed 1``: random films through the judge.

Exit status 1 when anybody was chosen who may not be; prints how often a right victim was chosen
before the kernel killed by itself.
"""

# ruff: noqa: T201 - a command: its answer goes to the terminal

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from tests.films.film import play
from tests.films.scripts import random_film

CHUNK = 250


def run(first: int, films: int) -> tuple[Counter[str], list[str]]:
    """Films by seed; counts, and words about each that went wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(first, first + films):
        shown = play(random_film(seed))
        name = shown.film.name
        counts["films"] += 1
        counts["ticks"] += shown.ticks
        counts["innocents at work"] += len(shown.film.world.actors) - len(shown.film.right)
        if shown.wrong:
            counts["wrong"] += 1
            wrong.append(f"seed {seed} {name}: {', '.join(shown.wrong)}")
        if shown.film.must_act:
            counts[f"must {name}"] += 1
            counts[f"in time {name}"] += shown.in_time
        elif shown.film.right:
            counts[f"may {name}"] += 1
            counts[f"did {name}"] += bool(shown.chosen)
    return counts, wrong


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--films", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(argv)
    began = time.monotonic()
    starts = range(options.seed, options.seed + options.films, CHUNK)
    sizes = [min(CHUNK, options.seed + options.films - start) for start in starts]
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for found, words in pool.map(run, starts, sizes):
            counts += found
            wrong += words
    took = time.monotonic() - began
    print(
        f"{counts['films']} films, seeds {options.seed} and up, {counts['ticks']} ticks,", end=" "
    )
    print(f"{counts['innocents at work']} innocents at work: {took:.0f} s")
    for kind, done in (("must", "in time"), ("may", "did")):
        for key in sorted(key for key in counts if key.startswith(f"{kind} ")):
            name = key.removeprefix(f"{kind} ")
            hit = counts[f"{done} {name}"]
            print(f"  {name:18} {hit:6} of {counts[key]:6} chosen {done if kind == 'must' else ''}")
    print(f"{counts['wrong']} films in which an innocent or a protected one was chosen")
    print("\n".join(wrong[:40]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
