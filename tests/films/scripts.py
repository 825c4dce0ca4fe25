"""Random films: every scenario of the whole-node proof, in three mixes of classes.

Beside every culprit innocents at full load: services, one that loads a model, one that sends
TCP, one that forks, and some that look guilty by evidence that is not certain.
"""

import random
from collections.abc import Callable

from tests.films.actor import MAPPED, TRACED, Actor
from tests.films.film import Film
from tests.films.world import MIB, World, plain_sum

from seawall.guard.settings import Settings
from seawall.guard.tick_facts import BEST_EFFORT, BURSTABLE, GUARANTEED, SYSTEM

MIXES = ("burstable", "hog_best_effort", "hog_guaranteed")
SIZES = (1536, 4096, 16384, 65536, 524288)
ADJ = {BEST_EFFORT: 1000, GUARANTEED: -997}
FOLDERS = {
    BEST_EFFORT: "/kubepods/besteffort",
    BURSTABLE: "/kubepods/burstable",
    GUARANTEED: "/kubepods",
}


class Cast:
    """Builds actors of one film in proportion to its node."""

    def __init__(self, chance: random.Random, mix: str) -> None:
        self.chance = chance
        self.total = chance.choice(SIZES) * MIB
        self.hog_class = {"burstable": BURSTABLE, "hog_best_effort": BEST_EFFORT}.get(
            mix, GUARANTEED
        )
        self.other_class = GUARANTEED if mix == "hog_best_effort" else BURSTABLE
        self.actors: list[Actor] = []
        self.has_swap = False
        self.is_kubernetes = True
        """False: containers of Docker, with limits and without requests."""
        self.unit = min(self.total / 1536, 24 * MIB)
        """As many bytes as 1 MiB is on a node of 1.5 GiB; no program takes 50 GiB a second."""

    def add(
        self, name: str, klass: int, request: float, limit: float | None, **more: object
    ) -> Actor:
        """A container with what the kubelet would give it."""
        wanted = int(request)
        adj = ADJ.get(klass, min(999, max(3, 1000 - 1000 * wanted // self.total)))
        number = len(self.actors)
        path = f"{FOLDERS[klass]}/pod{number:04d}/c"
        known = klass == BURSTABLE and self.chance.random() < 0.7
        given = {
            "class_rank": klass, "adj": adj, "limit": None if limit is None else int(limit),
            "request": wanted if known else None, "inode": 1000 + number,
        }  # fmt: skip
        if not self.is_kubernetes:
            given |= {"class_rank": BURSTABLE, "request": None}
            given["adj"] = self.chance.choice((0, 3, 100, 199))
            path = f"/kubepods/docker/{number:064x}"  # its wish: less than a step of priority
        actor = Actor(f"ns/{name}/c", path, **{**given, **more})  # type: ignore[arg-type]
        self.actors.append(actor)
        return actor

    def innocent(self, name: str, use: float, **more: object) -> Actor:
        """Uses less than it asked for; Guaranteed ones have the same as limit."""
        is_limited = self.other_class == GUARANTEED or self.chance.random() < 0.5
        limit = use * 1.3 if is_limited or name == "loader" else None
        return self.add(name, self.other_class, use * 1.25, limit, **{"anon": use, **more})

    def innocents(self) -> None:
        """Services, and the three loads that look like culprits."""
        chance, unit = self.chance, self.unit
        for number in range(chance.randint(2, 5)):
            suspected = unit * chance.uniform(50, 800) if chance.random() < 0.2 else 0.0
            self.innocent(f"service{number}", unit * chance.uniform(20, 120), suspected=suspected)
        size = unit * chance.uniform(80, 220)
        loads = chance.random()
        self.innocent(
            "loader", size, anon=unit * 5, anon_most=size if loads < 0.5 else unit * 10,
            anon_rate=unit * 300, cache_rate=unit * 300 if loads >= 0.5 else 0.0,
            starts=1000 + chance.uniform(0, 25),
        )  # fmt: skip
        vague = unit * chance.uniform(0, 500)
        self.innocent("sender", unit * 15, outside=unit * 2, suspected=vague,
                      certainty=chance.uniform(0, 1), sources=TRACED)  # fmt: skip
        self.innocent("forker", unit * 25, wobble=unit * 12)
        if chance.random() < 0.3:
            held = unit * chance.uniform(10, 60)
            self.innocent("pinned", held * 3, anon=held, outside=held, sources="DRM fdinfo")
        if chance.random() < 0.3:
            self.holds("mapped", is_asked_late=True, sources=MAPPED)
        if chance.random() < 0.3:
            self.holds("rings", restarts=1000 + chance.uniform(6, 30))
        if chance.random() < 0.3:
            self.innocent("reader", unit * 40, anon=unit * 5, cache_rate=unit * 150)
        if chance.random() < 0.5:
            self.batches()
        if chance.random() < 0.2:
            self.innocent("kube-proxy", unit * 20, protected_by="CNI", adj=-997)

    def holds(self, name: str, **more: object) -> None:
        """Much outside its cgroup, for weeks: promised to it, or by nobody to anybody."""
        held = self.unit * self.chance.uniform(50, 250)
        more |= {"anon": self.unit * 20, "outside": held}
        if self.chance.random() < 0.5:
            self.innocent(name, held + self.unit * 20, **more)
        else:
            self.add(f"batch-{name}", BEST_EFFORT, 0, None, **more)

    def batches(self) -> None:
        """Large, promised little or nothing, first in Kubernetes' order; they hold still, or are
        started again as large as before: what somebody else takes is not their fault.
        """
        chance, unit = self.chance, self.unit
        for number in range(chance.randint(1, 3)):
            other = BURSTABLE if self.other_class == BURSTABLE else BEST_EFFORT
            klass = chance.choice((BEST_EFFORT, other))
            again = 1000 + chance.uniform(3, 30) if chance.random() < 0.3 else float("inf")
            self.add(f"batch{number}", klass, 0 if klass == BEST_EFFORT else unit * 20, None,
                     anon=unit * chance.uniform(60, 250), restarts=again)  # fmt: skip

    @property
    def batch(self) -> list[Actor]:
        """Who may go when somebody presses who is in his right."""
        return [actor for actor in self.actors if "/batch" in actor.name]

    @property
    def unpromised(self) -> list[Actor]:
        """Whom nobody promised anything: some batches; without Kubernetes all without a limit."""
        free = [a for a in self.actors if a.limit is None and not self.is_kubernetes]
        return [*self.batch, *free]

    @property
    def loader(self) -> list[Actor]:
        """Without Kubernetes it has a mere limit, and takes all that is left within it."""
        return [a for a in self.actors if a.name == "ns/loader/c" and not self.is_kubernetes]

    def rest(self, room: float) -> float:
        """What is left for kernel and daemons."""
        held = plain_sum(a.anon + a.cache + a.outside for a in self.actors)
        loads = plain_sum(a.anon_most - a.anon for a in self.actors if a.name == "ns/loader/c")
        return self.total * 0.992 - held - loads - room * self.unit

    def swap(self, room: float) -> tuple[float, float]:
        """A part of ``room``; bytes, and what a byte in it costs."""
        if not self.has_swap:
            return 0.0, 0.0
        cost = self.chance.choice((0.0, 0.0, 0.3, 0.5, 0.9))
        most = plain_sum(actor.anon for actor in self.actors)
        return min(most, room * self.unit * self.chance.uniform(0.1, 0.9) / (1 - cost)), cost

    def world(self, room: float) -> World:
        """A node with ``room`` units of headroom when the film begins."""
        chance = self.chance
        # What does not fit leaves batches out: a node that is full before the film begins, where
        # a loader in its right presses BestEffort, is ``pressed`` and nothing else.
        while (system := self.rest(room)) < self.total * 0.05 and self.batch:
            self.actors.remove(self.batch[-1])
        system = max(system, self.total * 0.05)
        swap, cost = self.swap(room)
        return World(
            chance, self.total, system + swap * (1 - cost), self.actors, swap=swap, swap_cost=cost,
            text=min(system / 2, self.total * chance.uniform(0, 0.06)),
            claims_every=chance.uniform(0.3, 1.0), claims_late=chance.uniform(0.1, 1.0),
            noise=self.unit * chance.uniform(0.5, 4), rebases=chance.random() < 0.5,
        )  # fmt: skip


def film_of(
    cast: Cast, name: str, right: list[Actor], room: float, *, must: bool = True,
    seconds: float = 24.0, **settings: object,
) -> Film:  # fmt: skip
    chosen = Settings(mode="enforce", **settings)  # type: ignore[arg-type]
    world = cast.world(room)
    return Film(name, world, frozenset(a.name for a in right), chosen, seconds, must_act=must)


def rings(cast: Cast, rate: float, number: int = 0, **more: object) -> Actor:
    """A pod with a limit of 400 units that holds driver memory, and next to nothing charged."""
    unit, chance = cast.unit, cast.chance
    limit = unit * chance.uniform(100, 400)
    held = {
        "anon": unit * 5,
        "outside_rate": unit * rate,
        "starts": 1000 + chance.uniform(2, 6),
        **more,
    }
    return cast.add(f"hog{number}", cast.hog_class, limit * 0.5, limit, **held)


def rings_fast(cast: Cast) -> Film:
    hog = rings(cast, cast.chance.uniform(100, 250))
    return film_of(cast, "rings_fast", [hog], cast.chance.uniform(500, 800))


def rings_slow(cast: Cast) -> Film:
    hog = rings(cast, 20)
    return film_of(cast, "rings_slow", [hog], cast.chance.uniform(450, 520), seconds=50.0)


def two_culprits(cast: Cast) -> Film:
    hogs = [rings(cast, cast.chance.uniform(60, 120), n) for n in range(2)]
    return film_of(cast, "two_culprits", hogs, cast.chance.uniform(850, 1000), seconds=30.0)


def anon_bomb(cast: Cast) -> Film:
    """Without a limit, or with one that the node cannot hold; Guaranteed ones always have one."""
    unit, chance = cast.unit, cast.chance
    klass = cast.hog_class
    large = cast.total * chance.uniform(0.9, 1.2)
    limit = large if klass == GUARANTEED or chance.random() < 0.4 else None
    request = large if klass == GUARANTEED else unit * chance.uniform(10, 60)
    hog = cast.add("hog0", klass, request, limit, anon=unit * 5, starts=1003.0,
                   anon_rate=unit * chance.uniform(20, 250))  # fmt: skip
    # A Guaranteed one takes what it was promised: then Kubernetes' order holds.
    in_its_right = limit is not None if not cast.is_kubernetes else klass == GUARANTEED
    right = [hog, *cast.unpromised] if in_its_right else [hog]
    return film_of(cast, "anon_bomb", right, chance.uniform(200, 500), seconds=35.0,
                   must=klass != GUARANTEED)  # fmt: skip


def tmpfs_bomb(cast: Cast) -> Film:
    film = anon_bomb(cast)
    hog = next(a for a in film.world.actors if a.name == "ns/hog0/c")
    hog.gives_back = cast.chance.random() < 0.5
    film.name, film.must_act = "tmpfs_bomb", False
    return film


def prove_late(film: Film) -> None:
    """A second to four after the fact, as measured in VMs."""
    world = film.world
    world.proof_late = max(0.1, world.chance.uniform(1, 4) - world.claims_late)


def rings_late(cast: Cast) -> Film:
    """The proof is seconds later than the bound: time enough for a node to be gone."""
    film = rings_fast(cast)
    film.name = "rings_late"
    prove_late(film)
    return film


def two_late(cast: Cast) -> Film:
    film = two_culprits(cast)
    film.name = "two_late"
    prove_late(film)
    return film


def late_beside(cast: Cast) -> Film:
    """Beside a culprit whose proof is late somebody whose bound grows as well."""
    bound = cast.unit * cast.chance.uniform(20, 250)
    cast.innocent("traced", cast.unit * 40, suspected_rate=bound, sources=TRACED)
    film = rings_late(cast)
    film.name, film.must_act = "late_beside", False
    return film


def leak_beside(cast: Cast) -> Film:
    """A driver takes for nobody, in a workqueue; somebody at full load has the bound for it."""
    chance, unit = cast.chance, cast.unit
    rate = unit * chance.uniform(20, 200)
    shares = [chance.uniform(0.5, 2.0)] if chance.random() < 0.6 else [1.0, 1.0]
    for number, share in enumerate(shares):
        role = "CNI" if chance.random() < 0.2 else ""
        cast.innocent(f"traced{number}", unit * 40, suspected_rate=rate * share,
                      sources=TRACED, protected_by=role)  # fmt: skip
    film = film_of(cast, "leak_beside", [], chance.uniform(300, 500), must=False, seconds=40.0)
    film.world.leak_rate, film.world.leak_starts = rate, 1000 + chance.uniform(2, 6)
    film.world.leak_most = film.world.total * chance.uniform(0.2, 1.0)
    return film


def leaking_driver(cast: Cast) -> Film:
    hog = rings(cast, cast.chance.uniform(60, 250), driver_keeps=True)
    return film_of(cast, "leaking_driver", [hog], cast.chance.uniform(500, 700), seconds=40.0)


def unproved(cast: Cast) -> Film:
    """Nothing certain says whose it is: nobody may be chosen, the culprit neither."""
    rings(cast, cast.chance.uniform(20, 250), certainty=0.0)
    return film_of(cast, "unproved", [], cast.chance.uniform(200, 400), must=False, seconds=35.0)


def creeping_leak(cast: Cast) -> Film:
    """A driver leaks for nobody; the residual's base may follow it; then somebody loads."""
    leak = rings(cast, 30, certainty=0.0)
    leak.name = "ns/leak/c"
    leak.outside_most = cast.unit * cast.chance.uniform(150, 300)
    leak.outside = 0.0
    return film_of(cast, "creeping_leak", [], leak.outside_most / cast.unit + 60, must=False,
                   seconds=40.0)  # fmt: skip


def stuck_victim(cast: Cast) -> Film:
    hog = rings(cast, cast.chance.uniform(60, 250), stuck_seconds=60.0)
    return film_of(cast, "stuck_victim", [hog], cast.chance.uniform(500, 700), seconds=35.0)


def small_cgroups(cast: Cast) -> Film:
    """A hundred small innocents beside a culprit."""
    hog = rings(cast, cast.chance.uniform(100, 250))
    for number in range(100):
        cast.innocent(f"small{number}", cast.unit * cast.chance.uniform(1, 3))
    return film_of(cast, "small_cgroups", [hog], cast.chance.uniform(500, 700), seconds=12.0)


def protected_culprit(cast: Cast) -> Film:
    rings(cast, cast.chance.uniform(60, 250), protected_by="device plugin")
    return film_of(cast, "protected_culprit", [], cast.chance.uniform(450, 600), must=False)


def outside_scope(cast: Cast) -> Film:
    """A daemon of the system bursts: no pod pays for it."""
    daemon = Actor("unit:agent", "/system.slice/agent.service", SYSTEM, anon=cast.unit * 20,
                   anon_rate=cast.unit * cast.chance.uniform(20, 200), inode=77)  # fmt: skip
    cast.actors.append(daemon)
    return film_of(cast, "outside_scope", cast.loader, cast.chance.uniform(150, 400), must=False)


def restarted(cast: Cast) -> Film:
    film = rings_fast(cast)
    film.name, film.restart_at = "restarted", 1000 + cast.chance.uniform(3, 9)
    for actor in cast.actors:  # whom a guard never saw it cannot know again
        actor.restarts = float("inf")
    return film


def no_watcher(cast: Cast) -> Film:
    rings(cast, cast.chance.uniform(60, 250))
    film = film_of(cast, "no_watcher", [], cast.chance.uniform(300, 500), must=False)
    film.world.has_watcher = False
    return film


def hung_watcher(cast: Cast) -> Film:
    """The last that was told of one: far over its limit.  It has given all back since; somebody
    else takes the node, and the watcher tells nothing more.
    """
    was = cast.innocent("was", cast.unit * 50, outside=cast.unit * 300, lets_go=1004.0)
    was.limit = was.sees.limit_bytes = int(cast.unit * 100)
    rings(cast, cast.chance.uniform(60, 250), starts=1004.5)
    film = film_of(cast, "hung_watcher", [], cast.chance.uniform(350, 600), must=False)
    film.world.watcher_hangs, film.guilty_until = 1003.0, {was.name: 1004.0}
    return film


def at_own_limit(cast: Cast) -> Film:
    """Processes against a limit, thrash inside it: the node has room, nobody is touched."""
    cast.add("thrasher", cast.hog_class, cast.unit * 100, cast.unit * 200, anon=cast.unit * 195,
             cache_rate=cast.unit * 200)  # fmt: skip
    return film_of(
        cast, "at_own_limit", [], cast.chance.uniform(250, 500), must=False, seconds=18.0
    )


def quiet(cast: Cast) -> Film:
    """Loads at work, nobody guilty, the node has room."""
    return film_of(cast, "quiet", [], cast.chance.uniform(350, 600), must=False, seconds=18.0)


def pressed(cast: Cast) -> Film:
    """A model is loaded within its promise where there is no room: only who was promised less
    than it uses may go.
    """
    right = [*cast.unpromised, *cast.loader]
    film = film_of(cast, "pressed", right, 1, must=False, seconds=18.0)
    film.world.system += cast.unit * cast.chance.uniform(-150, 20)
    return film


def tight(cast: Cast) -> Film:
    """Little headroom, and nothing of the node itself says that it is short."""
    for actor in cast.actors:
        actor.anon_rate = actor.cache_rate = 0.0
        actor.anon_most = actor.anon
    return film_of(cast, "tight", [], cast.chance.uniform(40, 85), must=False, seconds=12.0)


SCRIPTS: tuple[Callable[[Cast], Film], ...] = (
    rings_fast, rings_slow, two_culprits, anon_bomb, tmpfs_bomb, leaking_driver, unproved,
    creeping_leak, rings_late, two_late, late_beside, leak_beside, stuck_victim, small_cgroups,
    protected_culprit, outside_scope, restarted, no_watcher, hung_watcher, at_own_limit, quiet,
    pressed, tight,
)  # fmt: skip


def random_film(
    seed: int, script: Callable[[Cast], Film] | None = None, mix: str = "", *, swap: bool = False,
    is_kubernetes: bool = True,
) -> Film:  # fmt: skip
    """The film of this seed, always the same; ``swap``: on a node that has some."""
    chance = random.Random(seed)
    cast = Cast(chance, mix or chance.choice(MIXES))
    cast.has_swap, cast.is_kubernetes = swap, is_kubernetes
    chosen = script or chance.choice(SCRIPTS)
    cast.innocents()
    return chosen(cast)
