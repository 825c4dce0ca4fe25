"""A film that comes apart from the others, so that their seeds mean what they meant."""

from tests.films.film import Film
from tests.films.scripts import MIB, Cast, film_of

from seawall.guard.tick_facts import BEST_EFFORT


def many_culprits(cast: Cast) -> Film:
    """Each small beside what is missing, all over their limits; beside them one that holds still,
    large and promised nothing.
    """
    unit, chance = cast.unit, cast.chance
    number = chance.randint(2, 12 if unit > 8 * MIB else 3)
    share, rate = unit * chance.uniform(500, 1100) / number, chance.uniform(100, 400) / number
    hogs = []
    for one in range(number):
        limit, starts = share * chance.uniform(0.2, 0.6), 1000 + chance.uniform(2, 6)
        hogs.append(cast.add(
            f"hog{one}", cast.hog_class, limit, limit, anon=unit * 2, outside_most=share,
            outside_rate=unit * rate * chance.uniform(0.7, 1.3), starts=starts,
        ))  # fmt: skip
    cast.add("batchlarge", BEST_EFFORT, 0, None, anon=unit * chance.uniform(150, 400))
    room = share * number / unit * chance.uniform(0.8, 1.05)
    return film_of(cast, "many_culprits", hogs, room, must=False, seconds=40.0,
                   kills_per_minute=chance.randint(1, 6))  # fmt: skip
