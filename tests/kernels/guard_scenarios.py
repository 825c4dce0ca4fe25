"""Whole-node scenarios as a table: whoever adds one adds one entry to ``ALL``.

A scenario says before it runs who the right victim is (``victims``; none: nobody may be
harmed).  A name stands for a pod of one container.  Beside every culprit three services of
120 MiB and three innocents at work, each within its limits: one loads a model, one sends TCP
as fast as it can, one forks.  Their share of a CPU is limited as a pod's is: the emulated
processors are three to ten times slower than real ones, and whoever is watched must be limited
by memory, not by the emulator.  In words: 300 MiB/s of model are asked for and 46 to 98 are
reached, 500 forks a second are asked for and 23 to 58 are reached (seed 171 of the campaign).
"""

import random
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Mix = Literal["all burstable", "hog best effort", "hog guaranteed"]
Kind = Literal["guaranteed", "burstable", "besteffort"]
Act = tuple[float | Literal["held"], str]

MIB = 1 << 20
LOADS, OWN = "kernel_loads.py", "guard_loads.py"
ENDLESS = str(4096 * MIB)
TAIL_SECONDS = 60.0
"""So long the canary is looked at after the end; a dead one fails every slot."""
SHORT_TAIL_SECONDS = 5.0
"""Where many runs have to fit into minutes: then fewer good slots stand beside the bad ones."""
MIXES: tuple[Mix, ...] = ("all burstable", "hog best effort", "hog guaranteed")


@dataclass(frozen=True)
class Load:
    """A pod: what runs in it and what it may have.  ``GO`` in a program: wait for the start."""

    name: str
    program: tuple[str, ...]
    limit_mib: int | None = None
    request_mib: int = 16
    cpu: float | None = 0.3
    is_culprit: bool = False
    adj: int | None = None
    """oom_score_adj; None: what the kubelet gives."""
    own_network: bool = True
    """As a pod has; False: the node's."""
    is_small: bool = False
    """Takes so many MiB and sleeps: cheap to start."""

    def kind(self, mix: Mix) -> Kind:
        if mix == "all burstable":
            return "burstable"
        if mix == "hog best effort":
            return "besteffort" if self.is_culprit else "guaranteed"
        return "guaranteed" if self.is_culprit else "burstable"


def service(number: int) -> Load:
    return Load(
        f"service-{number}", (OWN, "service", str(120 * MIB)), limit_mib=160, request_mib=120
    )


SERVICES = tuple(service(number) for number in (1, 2, 3))
MODEL = Load(
    "model", (LOADS, "load_model", "/opt/model", str(96 * MIB), "300"), limit_mib=128,
    request_mib=128, cpu=0.2,
)  # fmt: skip
RECEIVER = Load(
    "receiver",
    (LOADS, "receive", "7000"),
    limit_mib=64,
    request_mib=64,
    cpu=0.15,
    own_network=False,
)
SENDER = Load(
    "sender",
    (LOADS, "send", "7000"),
    limit_mib=64,
    request_mib=64,
    cpu=0.15,
    own_network=False,
)
FORKER = Load("forker", (LOADS, "forks", "500"), limit_mib=64, request_mib=64, cpu=0.2)
AT_WORK = (RECEIVER, SENDER, FORKER)
"""Where a disk is slow, or there is no room for a model: without the one that loads it."""
INNOCENTS = (MODEL, *AT_WORK)


def culprit(name: str, *program: str, **more: Any) -> Load:
    more = {"limit_mib": 400, "request_mib": 64, "cpu": None, **more}
    return Load(name, program, is_culprit=True, **more)


def rings(rate: int, name: str = "hog") -> Load:
    return culprit(name, LOADS, "rings", ENDLESS, str(rate), "GO")


@dataclass(frozen=True)
class Scenario:
    """One entry of the table."""

    name: str
    loads: tuple[Load, ...]
    victims: tuple[str, ...] = ()
    """Who has to go; nobody else may."""
    mix: Mix = "all burstable"
    seed: int = 1
    most_seconds: float = 90
    """So long it may take, on a slow host too; one without a right victim takes so long."""
    settle_seconds: float = 2
    tail_seconds: float = TAIL_SECONDS
    acts: tuple[Act, ...] = ()
    """What is done in the middle, so many seconds after the start or while the guard holds somebody
    or has lowered a limit: ``murder`` and ``restart`` the guard, ``cat status``."""
    cgroup: Literal["v2", "v1", "hybrid"] = "v2"
    swap: Literal["none", "disk", "zram"] = "none"
    disk_iops: int | None = None
    kernel_words: str = ""
    systemd: bool = False
    needs_module: bool = False
    sees_rings: bool = True
    """The kernel's module that tells packet rings is there."""
    prepare: str = ""
    """Shell lines, before anything else."""
    helpers: tuple[tuple[str, ...], ...] = ()
    """Daemons of the node."""
    may_die: tuple[str, ...] = ()
    """Whose end is nobody's fault: it is over its own limit, and the kernel ends it."""
    spoils_node: bool = False
    """Memory does not come back: nothing follows in that boot."""
    kernel_may: bool = False
    """Nothing can be proved: the guard has to let the kernel kill whom it kills."""
    follows_forks: bool = False
    """It is noted which processes of the guard make new ones."""
    says: str = ""
    """A pattern of what the guard has to say: of ``trigger: sentence``, or of its status."""
    reaches: dict[str, float] = field(default_factory=dict)
    """What it is about, and how much of it has to be there (``Report.not_reached``)."""
    guard: dict[str, Any] = field(default_factory=dict)
    """Keys of guard.toml that differ."""

    @property
    def node(self) -> tuple[Any, ...]:
        """Scenarios with the same can follow each other in one boot."""
        return (self.cgroup, self.swap, self.disk_iops, self.kernel_words, self.systemd,
                self.needs_module, self.sees_rings, self.prepare, repr(self.guard))  # fmt: skip

    @property
    def id(self) -> str:
        swap = "" if self.swap == "none" else f", {self.swap}"
        init = ", systemd" if self.systemd else ""
        return f"{self.name} [{self.cgroup}{init}{swap}, {self.mix}, seed {self.seed}]"

    def spec(self) -> dict[str, Any]:
        """What the guest is told."""
        return {
            "name": self.name, "seed": self.seed, "victims": list(self.victims),
            "most_seconds": self.most_seconds, "settle_seconds": self.settle_seconds,
            "tail_seconds": self.tail_seconds, "acts": [list(act) for act in self.acts],
            "helpers": [list(words) for words in self.helpers],
            "loads": [
                {"name": load.name, "program": list(load.program), "limit_mib": load.limit_mib,
                 "request_mib": load.request_mib, "cpu": load.cpu, "kind": load.kind(self.mix),
                 "is_culprit": load.is_culprit, "adj": load.adj,
                 "is_small": load.is_small, "own_network": load.own_network}
                for load in self.loads
            ],
        }  # fmt: skip


def beside(*culprits: Load) -> tuple[Load, ...]:
    return (*SERVICES, *INNOCENTS, *culprits)


def hog(name: str, *culprits: Load, **more: Any) -> Scenario:
    """All its culprits are the right victims."""
    victims = tuple(load.name for load in culprits)
    return Scenario(name, beside(*culprits), victims, **more)


def device(mode: str, mib: int) -> Load:
    return culprit("hog", LOADS, "device", "/dev/seawall_pages", str(mib * MIB), "0", mode, "GO")


def fill(kind: str, room_mib: int, rate: int, **more: Any) -> Load:
    return culprit("hog", OWN, "fill", kind, str(room_mib), str(rate), "GO", **more)


PAIR = ("hog-1", "hog-2")
BOMB = culprit("hog", OWN, "anonymous", ENDLESS, "160", "GO", limit_mib=1400)
SHM = culprit("hog", OWN, "tmpfs", ENDLESS, "120", "GO", limit_mib=1400)
HANDING = culprit("hog", OWN, "handing", "120", "30", "GO")
MANY = culprit("hog", OWN, "small", "1280", "1024", "GO", limit_mib=400, cpu=1.0)
REREAD = culprit("hog", OWN, "reread", "/opt/text", "GO", limit_mib=48, cpu=0.3)
STUCK = culprit("hog", OWN, "stuck", "/mnt/stuck", "rings", ENDLESS, "120", "GO")
FUSE = ("fuse_server.py", "/mnt", "stuck")
STREAM = Load("stream", (OWN, "stream", "/opt/stream", ENDLESS), cpu=0.2)
COLD = Load("cold", (OWN, "cold", str(400 * MIB)))
SMALL = tuple(Load(f"small-{n:03}", ("2",), limit_mib=16, is_small=True) for n in range(100))
FEW_WORDS = "dmesg -n 1; echo 0 > /proc/sys/vm/oom_dump_tasks"
"""Each of many reports would name 1,280 tasks on an emulated serial line."""
MODEL_IN_HUGE = "echo 60 > /proc/sys/vm/nr_hugepages"
NOT_FOR_NOTHING = r"Nobody is killed: |^told: .* of what was foretold for test/hog/[^ ]+: "
REPORTED = r'^over_limit: .*test/hog.* Nothing is done: the policy is "report"'
LOCKED: dict[str, Any] = {
    "kernel_words": "lockdown=confidentiality", "sees_rings": False, "kernel_may": True,
    "may_die": ("hog",), "most_seconds": 45,
    "says": "^unseen: the kernel is locked down ",
}  # fmt: skip
SLOW = 1500
KILL = {"over_limit": "kill", "over_limit_opt_in": ["*"], "over_limit_seconds": 3}
CLAMP = {**KILL, "over_limit": "clamp"}


def programs(pods: int, each: int) -> tuple[Load, ...]:
    """So many programs that run 96 MiB of text between them."""
    return tuple(
        Load(f"text-{n}", (OWN, "text", "/opt/text", str(each)), request_mib=32, cpu=None)
        for n in range(pods)
    )


_RIGHT = (
    hog("rings fast", rings(160)),
    hog("rings, node's network", replace(rings(160), own_network=False)),
    hog("rings slow", rings(20)),
    # Guaranteed two of 400 MiB would be more than a scheduler gives to this node, and whoever
    # keeps within its promise is nobody's right victim.
    hog("two culprits", *(replace(rings(40, name), limit_mib=300) for name in PAIR)),
    hog("two culprits, fast", *(replace(rings(100, name), limit_mib=300) for name in PAIR)),
    hog("handed on", HANDING),
    hog("anonymous bomb", BOMB),
    hog("tmpfs bomb", SHM),
    hog("module holds", device("keep", 1000), needs_module=True),
    hog("victim in D", STUCK, helpers=(FUSE,)),
    # Where nobody mounted one the watcher does, for itself.
    hog("tracefs not mounted", rings(160), prepare="NO_TRACING=1", sees_rings=False),
    hog("guard murdered", rings(20), acts=((4, "murder"), (4.1, "restart"))),
    hog("over limit, kill", fill("rings", 250, 60), guard=KILL),
    hog("over limit, clamp", fill("both", 250, 60, limit_mib=300), guard=CLAMP),
    # Beside so many there is room for some 500 MiB: with more it is over no limit in time.
    Scenario(
        "a hundred pods",
        (*SERVICES, *AT_WORK, *SMALL, replace(rings(160), limit_mib=200)), ("hog",)
    ),
    Scenario(
        "thrash, few", (*SERVICES, *AT_WORK, *programs(1, 4), fill("rings", 24, 100)), ("hog",),
        disk_iops=SLOW, acts=((8, "cat status"),),
    ),
    Scenario(
        "thrash, many",
        (*SERVICES, *AT_WORK, *programs(4, 10), fill("anonymous", 24, 100, limit_mib=1400)),
        ("hog",), disk_iops=SLOW, acts=((8, "cat status"),), most_seconds=40,
    ),
)  # fmt: skip
_NOBODY = (
    Scenario("quiet", beside(), most_seconds=20),
    Scenario("streaming reads", (*beside(), STREAM), most_seconds=15),
    Scenario("module churns", beside(device("churn", 100)), needs_module=True, most_seconds=15),
    Scenario(
        "module forgets", beside(fill("forget", 60, 160)), needs_module=True, may_die=("hog",),
        most_seconds=60, spoils_node=True, says=NOT_FOR_NOTHING,
    ),
    Scenario(
        "small processes", beside(MANY), may_die=("hog",), most_seconds=45, prepare=FEW_WORDS,
        reaches={"hits of its limit": 1},
    ),
    Scenario(
        "thrash in limit", beside(REREAD), may_die=("hog",), most_seconds=15,
        reaches={"refaults": 1000},
    ),
    Scenario(
        "over limit, report", beside(fill("rings", 250, 60)), most_seconds=60, says=REPORTED
    ),
    Scenario("hugepages", beside(), prepare=MODEL_IN_HUGE, most_seconds=15,
             reaches={"MiB of huge pages": 120}),
    Scenario("zram nearly full", (*beside(), COLD), swap="zram", most_seconds=15,
             reaches={"share of swap": 0.7}),
    Scenario("lockdown", beside(rings(160)), **LOCKED),
    Scenario(
        "thrash, observed",
        (*SERVICES, *AT_WORK, *programs(4, 10), fill("anonymous", 24, 100, limit_mib=1400)),
        disk_iops=SLOW, acts=((10, "cat status"), (13, "cat status"), (16, "cat status")),
        most_seconds=18, kernel_may=True, may_die=("hog",), guard={"mode": "observe"},
    ),
)  # fmt: skip

MURDERED = ("held", "murder"), (0, "restart")
# The next guard is ready after some four seconds, and begins by letting go whom the last one held.
HELD = hog(
    "murdered while it holds", rings(10), acts=MURDERED, most_seconds=150,
    guard={"terminate_seconds": 0},
)  # fmt: skip
HOPELESS = hog(
    "none can be chosen", replace(MANY, adj=-1000, limit_mib=520), prepare=FEW_WORDS,
    says="^stuck_at_limit: ", guard={"stuck_seconds": 15, "unprotect": ["test/hog"]},
)  # fmt: skip
"""Seed 3.  Until Linux 5.8 a negative oom_score_adj was enough to have no badness in a small
container; since 5.9 the kernel chooses the least unlikely, and leaves -1000 alone."""
ALL = {scenario.name: scenario for scenario in (*_RIGHT, *_NOBODY)}
CLAMPED = replace(ALL["over limit, clamp"], name="murdered while it clamps", acts=MURDERED)


LEAK = Load("leak", (OWN, "leak", str(150 * MIB), "4"), limit_mib=200, request_mib=180)
"""Not a culprit: it keeps within its request."""


def _within(rate: int, name: str, limit: int = 300) -> Load:
    """Of each the uncounted memory alone brings it over that limit, late."""
    return replace(rings(rate, name), limit_mib=limit)


PAIRS = (
    hog("pair, equal", *(_within(80, name) for name in PAIR)),
    hog("pair, equal, fast", *(_within(100, name) for name in PAIR)),
    hog("pair, unequal", _within(120, PAIR[0]), _within(20, PAIR[1])),
    hog("pair, over limits", *(_within(60, name, 96) for name in PAIR)),
    hog(
        "pair, 10 s apart", _within(40, PAIR[0]),
        culprit(PAIR[1], OWN, "later", "10", "80", "GO", limit_mib=300),
    ),
    hog("pair, one hidden", _within(60, PAIR[0]), replace(HANDING, name=PAIR[1])),
    hog("three at once", *(_within(50, name) for name in (*PAIR, "hog-3"))),
    replace(
        hog("pair beside a leak", *(_within(80, name) for name in PAIR)),
        loads=(*beside(*(_within(80, name) for name in PAIR)), LEAK),
    ),
)  # fmt: skip
"""Several culprits at once, each within its limit for most of the time (``guard_pairs``)."""


def on(scenario: Scenario, **node: Any) -> Scenario:
    """The same on another node: ``cgroup``, ``swap``, ``systemd``, ``disk_iops``."""
    return replace(scenario, **node)


QUIET = ("quiet", "streaming reads", "thrash in limit", "hugepages", "zram nearly full",
         "module churns")  # fmt: skip
"""Nobody may be acted on, however long it lasts."""


def quiet(seconds: float) -> list[Scenario]:
    """Each so long, on v2; what needs no node of its own on v1 and under systemd too."""
    nodes: tuple[dict[str, Any], ...] = ({}, {"cgroup": "v1"}, {"systemd": True})
    return [
        on(ALL[name], most_seconds=seconds, tail_seconds=0, **node)
        for node in nodes for name in QUIET
        if not node or ALL[name].node == ALL["quiet"].node
    ]  # fmt: skip


def mixed(scenario: Scenario, seed: int) -> Scenario:
    """The same with what a seed chooses: mix, pace, order of the pods."""
    chance = random.Random(seed)
    loads = list(scenario.loads)
    chance.shuffle(loads)
    return replace(
        scenario, seed=seed, mix=chance.choice(MIXES), loads=tuple(loads),
        settle_seconds=round(chance.uniform(1, 4), 1),
    )  # fmt: skip


def _ci() -> tuple[Scenario, ...]:
    """What every run of `make test-system` can afford, five boots: every kind of node, every kind
    of culprit, every mix, and somebody who does nothing wrong.  What stands here twice is in
    ``_nodes``: rings on v1 and hybrid, an anonymous bomb under systemd, a node that is quiet.
    """
    return (
        on(ALL["rings fast"], mix="hog guaranteed", systemd=True),
        on(mixed(ALL["anonymous bomb"], 23), cgroup="v1"),
        on(mixed(ALL["handed on"], 41), cgroup="hybrid"),
        on(mixed(ALL["tmpfs bomb"], 27), swap="zram"),
        ALL["module holds"],
        ALL["module churns"],
        ALL["module forgets"],
    )


def _nodes() -> tuple[Scenario, ...]:
    """What `make guard-nodes` runs: six boots, some twelve minutes."""
    unit: dict[str, Any] = {"systemd": True}
    v1: dict[str, Any] = {"cgroup": "v1"}
    return (
        *(on(ALL["rings fast"], mix=mix) for mix in MIXES),
        *(mixed(ALL[name], seed) for seed, name in enumerate((
            "anonymous bomb", "tmpfs bomb", "rings, node's network", "handed on",
        ), start=31)),
        on(ALL["rings fast"], mix="hog guaranteed", **unit),
        *(on(mixed(ALL[name], seed), **unit) for seed, name in enumerate((
            "anonymous bomb", "tmpfs bomb", "handed on",
        ), start=13)),
        on(ALL["quiet"], most_seconds=12, **unit),
        *(on(mixed(ALL[name], seed), **v1) for seed, name in enumerate((
            "rings fast", "tmpfs bomb", "anonymous bomb",
        ), start=21)),
        *(on(mixed(ALL[name], seed), cgroup="hybrid") for seed, name in enumerate((
            "handed on", "rings fast",
        ), start=41)),
        *(on(mixed(ALL[name], seed), swap="zram") for seed, name in enumerate((
            "rings fast", "anonymous bomb", "tmpfs bomb",
        ), start=25)),
        ALL["module holds"], ALL["module churns"], ALL["module forgets"],
    )  # fmt: skip


def _marks() -> tuple[Scenario, ...]:
    """What `make marks` runs: an hour."""
    unit: dict[str, Any] = {"systemd": True}
    v1: dict[str, Any] = {"cgroup": "v1"}
    fast = ALL["rings fast"]
    return (
        *(on(fast, mix=mix, **unit) for mix in MIXES),
        *(on(mixed(ALL[name], seed), **unit) for seed, name in enumerate((
            "two culprits", "handed on", "anonymous bomb", "a hundred pods", "victim in D",
        ), start=11)),
        on(ALL["guard murdered"], **unit),
        *(on(mixed(ALL[name], seed), **v1) for seed, name in enumerate((
            "rings fast", "tmpfs bomb", "anonymous bomb", "rings slow", "two culprits",
            "victim in D", "a hundred pods",
        ), start=21)),
        on(fast, cgroup="hybrid"),
        on(fast, swap="disk"),
        on(fast, swap="zram"),
        *(ALL[name] for name in (
            "module holds", "module forgets", "thrash, few", "thrash, many",
            "over limit, kill", "over limit, clamp", "lockdown", "tracefs not mounted",
            "over limit, report", "thrash, observed", "small processes", "rings slow",
            "two culprits, fast",
        )),
        HELD, CLAMPED, HOPELESS, on(HOPELESS, **v1),
        *quiet(30),
    )  # fmt: skip


CI = tuple(on(scenario, tail_seconds=SHORT_TAIL_SECONDS) for scenario in _ci())
NODES = tuple(on(scenario, tail_seconds=SHORT_TAIL_SECONDS) for scenario in _nodes())
MARKS = _marks()
