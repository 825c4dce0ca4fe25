"""``python -m tests.films.campaign --films 100000 --seed 1``: random films through the judge.

Exit status 1 when anybody was chosen who may not be, or held unfairly; prints how often a right
victim was chosen before the kernel killed by itself.  ``--compare`` plays each film once more
without holds (``hold_suspects = false``), and prints both and when the first was chosen.
"""

# ruff: noqa: T201 - a command: its answer goes to the terminal

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.films.film import Film, play
from tests.films.many import many_culprits
from tests.films.scripts import random_film

CHUNK = 250
SWAP_EVERY = 3
"""So often a node has swap."""
DOCKER_EVERY = 5
"""So often it is Docker's: containers with limits, and no requests."""
MANY_EVERY = 23
"""So often there are many small culprits."""
BEGINS = 1000.0
A_TICK = 0.3


def film_of_seed(seed: int, *, holds: bool) -> Film:
    """What this seed stands for in a campaign."""
    is_kubernetes = seed % DOCKER_EVERY != 0
    script = many_culprits if seed % MANY_EVERY == 0 else None
    film = random_film(seed, script, swap=seed % SWAP_EVERY == 0, is_kubernetes=is_kubernetes)
    film.settings = film.settings._replace(hold_suspects=holds)
    return film


def run(first: int, films: int, *, holds: bool = True) -> tuple[Counter[str], list[str]]:
    """Films by seed; counts, and words about each that went wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    for seed in range(first, first + films):
        film = film_of_seed(seed, holds=holds)
        shown = play(film)
        name = shown.film.name
        counts["films"] += 1
        counts["ticks"] += shown.ticks
        counts["innocents at work"] += len(shown.film.world.actors) - len(shown.film.right)
        if shown.wrong:
            counts["wrong"] += 1
            wrong.append(f"seed {seed} {name}: {', '.join(shown.wrong)}")
        if shown.unfair:
            counts["unfair"] += 1
            wrong.append(f"seed {seed} {name}: {', '.join(shown.unfair)}")
        counts["holds"] += len(shown.held)
        takers = {a.sees.name for a in film.world.actors if a.outside_rate}
        counts["holds of innocents"] += sum(name not in takers for *_, name in shown.held)
        counts["killed by the kernel"] += len(set(shown.film.world.kernel_killed) - film.right)
        counts["starved"] += int(shown.film.world.starved * 1000)
        if shown.film.must_act:
            counts[f"must {name}"] += 1
            counts[f"in time {name}"] += shown.in_time
        elif shown.film.right:
            counts[f"may {name}"] += 1
            counts[f"did {name}"] += bool(shown.chosen)
    return counts, wrong


def first_at(seed: int, *, holds: bool) -> tuple[str, float | None]:
    """Which film it is, and after how many seconds the first was chosen in time in it."""
    film = film_of_seed(seed, holds=holds)
    shown = play(film)
    return film.name, (shown.chosen_at[0] - BEGINS if shown.in_time else None)


def compared(first: int, films: int) -> list[tuple[str, float | None, float | None]]:
    """Films with a right victim: their names, and when it was chosen with holds and without.

    None: the kernel killed first, or nobody was chosen.
    """
    found = []
    for seed in range(first, first + films):
        name, with_holds = first_at(seed, holds=True)
        _, without = first_at(seed, holds=False)
        if with_holds is not None or without is not None:
            found.append((name, with_holds, without))
    return found


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--films", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--compare", action="store_true", help="with holds and without")
    options = parser.parse_args(argv)
    starts = range(options.seed, options.seed + options.films, CHUNK)
    sizes = [min(CHUNK, options.seed + options.films - start) for start in starts]
    wrong = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for holds in (True, False) if options.compare else (True,):
            print("" if holds else "without holds: ", end="")
            wrong += campaign(pool, starts, sizes, holds=holds)
        if options.compare:
            rows = [row for found in pool.map(compared, starts, sizes) for row in found]
            print_compared(rows)
    return 1 if wrong else 0


def campaign(
    pool: ProcessPoolExecutor, starts: range, sizes: list[int], *, holds: bool
) -> int:  # fmt: skip
    """All of it, printed; how many films went wrong."""
    began = time.monotonic()
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for found, words in pool.map(partial(run, holds=holds), starts, sizes):
        counts += found
        wrong += words
    print(
        f"{counts['films']} films, seeds {starts.start} and up, {counts['ticks']} ticks, "
        f"{counts['innocents at work']} innocents at work: {time.monotonic() - began:.0f} s"
    )
    for kind, done in (("must", "in time"), ("may", "did")):
        for key in sorted(key for key in counts if key.startswith(f"{kind} ")):
            name = key.removeprefix(f"{kind} ")
            hit = counts[f"{done} {name}"]
            print(f"  {name:18} {hit:6} of {counts[key]:6} chosen {done if kind == 'must' else ''}")
    print(
        f"{counts['holds']} times somebody stood still on suspicion, {counts['unfair']} films "
        f"unfairly; {counts['holds of innocents']} times it was an innocent, who went on; the "
        f"kernel killed {counts['killed by the kernel']} innocents; programs stood still for "
        f"{counts['starved'] / 1000 / counts['films']:.2f} s a film, their text gone"
    )
    print(f"{counts['wrong']} films in which an innocent or a protected one was chosen")
    print("\n".join(wrong[:40]))
    return len(wrong)


def print_compared(rows: list[tuple[str, float | None, float | None]]) -> None:
    """When a right victim was chosen before the kernel killed anybody, by film."""
    for name in sorted({row[0] for row in rows}):
        here = [row for row in rows if row[0] == name]
        both = [(a, b) for _, a, b in here if a is not None and b is not None]
        if not both:
            continue
        mine, other = (sum(times) / len(both) for times in zip(*both, strict=True))
        later = sum(a > b + A_TICK for a, b in both)
        only = [sum(b is None for _, _, b in here), sum(a is None for _, a, _ in here)]
        print(
            f"  {name:18} in time after {mine:6.2f} s with holds, {other:6.2f} s without; "
            f"later by more than a tick in {later} of {len(both)}; only with {only[0]}, only "
            f"without {only[1]}"
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
