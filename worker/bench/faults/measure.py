"""`clarinet bench faults`: hosts are killed, cut, paused and skewed while people answer and runs train."""

import statistics
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from io import BytesIO
from pathlib import Path
from uuid import UUID

import numpy as np

from app.accounts import service as accounts
from app.clock import utc_now
from app.runs.models import Trial
from clarinet_client import Client
from clarinet_client.shapes.runs import RunChoices
from worker.bench.ending import ending_in_order
from worker.bench.faults.books import lost_and_doubled, orphans
from worker.bench.faults.cluster import Cluster, cluster
from worker.bench.faults.hosts import Host
from worker.bench.faults.people import BATCH, Person
from worker.bench.faults.schedule import ANSWERS, TRIALS, Chance, Fault, Kind, drawn
from worker.bench.faults.trainings import Takeover, Trainings, can_be_taken, different, digests, failures
from worker.bench.rows import CLASSES, add_campaign, add_dataset, add_people
from worker.bench.serve import measured
from worker.bench.web import Server

# Tiny trainings that end an epoch, with its checkpoint, every second or so.
CHOICES: RunChoices = {
    "preset": "digits-quick",
    "config": {"epochs": 6, "steps_per_epoch": 4, "batch_size": 16, "checkpoint_every": 1},
}
IMAGES, NUM_CLASSES = 120, 3
WAIT_S = 3.0  # at most, before a fault of trials
FAULT_S = 4.0  # about so long a fault of answers lasts
LOOK_S = 0.25
BACK_S = 60.0  # for people's last batches once all hosts are whole again
PER_PAIR = (1, 2)  # questions, requests: as a page of cards asks


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything."""

    questions: int = 400
    people: int = 8
    runs: int = 1
    seeds: int = 2
    answer_faults: int = 4
    trial_faults: int = 4
    seed: int = 0
    minutes: float = 2.0  # over which answers and their faults are spread; after it no fault begins
    speed_s: float = 0.0  # for each measurement of pairs a second; 0: none


@dataclass(slots=True)
class Figures:
    """What was done and what came of it."""

    plan: Plan
    network: bool  # hosts are network namespaces; otherwise none was cut from the others
    answer_faults: int = 0
    trial_faults: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    answers: int = 0  # acknowledged
    refused: dict[str, int] = field(default_factory=dict)  # answers that were not taken, and why
    lost: int = 0
    doubled: int = 0
    orphans: list[str] = field(default_factory=list)
    trials: int = 0
    different: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    takeovers: list[Takeover] = field(default_factory=list)
    batch_p99_s: float | None = None  # lease and answers of BATCH questions, while hosts fail
    speed: list[dict[str, float]] = field(default_factory=list)  # without faults, by web processes
    seconds: float = 0.0

    @property
    def slowest_takeover_s(self) -> float | None:
        """From a host's loss to the next claim of its trial."""
        return max((one.seconds for one in self.takeovers), default=None)

    @property
    def is_well(self) -> bool:
        """Nothing was lost, doubled, orphaned or computed otherwise."""
        return not (self.lost or self.doubled or self.orphans or self.different)


class Run:
    """One execution of the plan over a cluster."""

    def __init__(self, plan: Plan, made: Cluster, say: Callable[[str], None]) -> None:
        self.plan, self.cluster, self.say = plan, made, say
        self.figures = Figures(plan, network=made.network.can_cut)
        self.over = threading.Event()  # no fault begins after it
        self.deadline = float("inf")
        self._lock = threading.Lock()

    def execute(self) -> Figures:
        """All of it; gives the figures."""
        started = time.monotonic()
        self.cluster.start_web(0)
        self._measure_speed(1)
        self.cluster.start_web(1)
        self._measure_speed(2)
        self.cluster.start_workers()
        campaign_id, tokens, trainings = self._prepare()
        self.say("a run without faults")
        trainings.finish(1, has_enough=lambda: True, is_late=lambda: False)
        undisturbed = {seed: digest for (_, seed), digest in digests(self.cluster.context).items()}
        people = self._endure(campaign_id, tokens, trainings)
        self._account(campaign_id, people, trainings, undisturbed)
        self.figures.seconds = time.monotonic() - started
        return self.figures

    def _measure_speed(self, processes: int) -> None:
        if not self.plan.speed_s:
            return
        case = (self.plan.people, *PER_PAIR)
        self.say(f"pairs a second with {processes} web processes")
        [proxy] = self.cluster.hosts["proxy"]
        server = Server(self.cluster.port, proxy.pids()[0], self.cluster.address)
        row = measured(self.cluster.context, server, case, "fast", seconds=self.plan.speed_s)
        told = {"web": processes, "pairs_per_s": row.pairs_per_s, "p50_ms": row.p50_ms, "p99_ms": row.p99_ms}
        self.figures.speed.append(told)

    def _prepare(self) -> tuple[UUID, list[str], Trainings]:
        """The campaign that people answer, their tokens, and another one that is answered, for the runs."""
        self.say(f"{self.plan.questions} questions for {self.plan.people} people")
        context = self.cluster.context
        with context.unit_of_work() as session:
            admin, people = add_people(session, self.plan.people)
            admin_token, *tokens = [
                accounts.create_token(session, person, "faults", now=utc_now())[1]
                for person in (admin, *people)
            ]
            campaign_id = add_campaign(session, admin, add_dataset(session, admin, self.plan.questions))
        with Client(self.cluster.url, admin_token) as client:
            client.campaigns.wait(str(campaign_id))
            source, target = (self._send(client, name) for name in ("Source", "Target"))
            drafted = client.campaigns.create("For runs", source)
            client.campaigns.ask_to_open(drafted["id"])
            opened = client.campaigns.wait(drafted["id"])
        helpers = self._people(opened["id"], tokens[:2], NUM_CLASSES, rest_s=0, stop=threading.Event())
        for helper in helpers:
            helper.start()
        for helper in helpers:
            helper.join()
        trainings = Trainings(
            context=context,
            url=self.cluster.url,
            token=admin_token,
            campaign_id=UUID(drafted["id"]),
            target_id=UUID(target),
            choices={**CHOICES, "seeds": list(range(self.plan.seeds))},
        )
        return campaign_id, tokens, trainings

    @staticmethod
    def _send(client: Client, name: str) -> str:
        chance = np.random.default_rng(list(name.encode()))
        classes = np.arange(IMAGES) % NUM_CLASSES
        pixels = chance.integers(0, 60, (IMAGES, 8, 8)) + (60 * classes)[:, None, None]
        file = BytesIO()
        np.savez(file, x_train=pixels.astype(np.uint8), y_train=classes)
        file.seek(0)
        sent = client.datasets.send(file, filename="images.npz", name=name)
        return client.datasets.wait(sent["id"])["id"]

    def _endure(self, campaign_id: UUID, tokens: Sequence[str], trainings: Trainings) -> list[Person]:
        """Everything at once; returns when all trials have ended and people have stopped."""
        plan = self.plan
        begun, seconds = time.monotonic(), 60 * plan.minutes
        self.deadline = begun + seconds
        stop = threading.Event()
        rest_s = (
            seconds * plan.people * BATCH / plan.questions / 1.3
        )  # a part is asked twice; waits come on top
        people = self._people(str(campaign_id), tokens, len(CLASSES), rest_s=rest_s, stop=stop)
        pause_s = max(0.5, 2 * (seconds / max(1, plan.answer_faults) - FAULT_S))
        strikers = [
            threading.Thread(target=target, args=arguments, daemon=True)  # who is asked to end waits for none
            for target, arguments in (
                (self._strike_answers, (self._drawn(ANSWERS, plan.answer_faults, pause_s),)),
                (self._strike_trials, (self._drawn(TRIALS, plan.trial_faults, WAIT_S), trainings)),
            )
        ]
        for thread in (*people, *strikers):
            thread.start()
        try:
            trainings.finish(
                plan.runs,
                has_enough=lambda: not strikers[1].is_alive(),
                is_late=lambda: time.monotonic() > self.deadline,
            )
        except BaseException:  # asked to end: hosts end as well, and nobody hits or asks them meanwhile
            stop.set()
            raise
        finally:
            self.over.set()
        for thread in strikers:
            thread.join()
        while any(person.is_alive() for person in people) and time.monotonic() < self.deadline + BACK_S:
            time.sleep(LOOK_S)
        stop.set()
        for person in people:
            person.join()
        return people

    def _people(
        self,
        campaign_id: str,
        tokens: Sequence[str],
        num_classes: int,
        *,
        rest_s: float,
        stop: threading.Event,
    ) -> list[Person]:
        return [Person(self.cluster.url, token, campaign_id, rest_s, stop, num_classes) for token in tokens]

    def _drawn(self, chances: Sequence[Chance], count: int, most_wait_s: float) -> list[Fault]:
        return drawn(
            chances, count, seed=self.plan.seed, most_wait_s=most_wait_s, can_cut=self.figures.network
        )

    def _strike_answers(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            if not self._wait(fault.wait_s):
                return
            self._hit(self._host(fault), fault)
            self.figures.answer_faults += 1

    def _strike_trials(self, faults: Sequence[Fault], trainings: Trainings) -> None:
        for fault in faults:
            if not self._wait(fault.wait_s):
                return
            host = self._host(fault)
            if fault.on == "gpu":
                found = self._victim(fault, trainings)
                if found is None:
                    return
                host, trials = found
                if fault.costs_attempt:
                    trainings.lose(
                        trials, f"{fault.kind} {fault.part if fault.kind is Kind.KILL else ''}".strip()
                    )
            self._hit(host, fault)
            self.figures.trial_faults += 1

    def _victim(self, fault: Fault, trainings: Trainings) -> tuple[Host, list[Trial]] | None:
        """A host that trains, once there is one whose trial may be lost; None: it is late."""
        hosts = self.cluster.hosts["gpu"]
        first = int(fault.which * len(hosts))
        while self._wait(LOOK_S):
            for host in (*hosts[first:], *hosts[:first]):
                trials = trainings.running_on(host)
                if trials and (not fault.costs_attempt or all(map(can_be_taken, trials))):
                    return host, trials
        return None

    def _host(self, fault: Fault) -> Host:
        hosts = self.cluster.hosts[fault.on]
        return hosts[int(fault.which * len(hosts))]

    def _hit(self, host: Host, fault: Fault) -> None:
        name = f"{fault.on} {fault.kind}"
        with self._lock:
            self.figures.by_kind[name] = self.figures.by_kind.get(name, 0) + 1
        self.say(f"{host.name}: {fault.kind} {fault.part} {fault.for_s:.1f} s")
        acts: dict[Kind, tuple[Callable[[], object], Callable[[], object]]] = {
            Kind.KILL: (lambda: host.kill(fault.part), lambda: None),
            Kind.POWER: (host.power_off, host.power_on),
            Kind.CUT: (host.cut, host.heal),
            Kind.PAUSE: (host.pause, host.go_on),
            Kind.SKEW: (lambda: host.skew(fault.ahead_s), lambda: host.skew(0)),
        }
        begin, end = acts[fault.kind]
        begin()
        time.sleep(fault.for_s)
        end()

    def _wait(self, seconds: float) -> bool:
        """Wait; whether there is still time for a fault."""
        return not self.over.wait(seconds) and time.monotonic() < self.deadline

    def _account(
        self,
        campaign_id: UUID,
        people: Sequence[Person],
        trainings: Trainings,
        undisturbed: dict[int, str],
    ) -> None:
        self.say("counting")
        figures, context = self.figures, self.cluster.context
        book = {key: value for person in people for key, value in person.book.items()}
        figures.answers = len(book)
        figures.refused = dict(Counter(why for person in people for why in person.refused))
        figures.lost, figures.doubled = lost_and_doubled(context, campaign_id, book)
        found = digests(context)
        figures.trials = trainings.launched * self.plan.seeds
        figures.different = different(found, undisturbed, figures.trials)
        figures.failures = failures(context)
        figures.takeovers = trainings.takeovers
        figures.orphans = orphans(context, [host for hosts in self.cluster.hosts.values() for host in hosts])
        took = [seconds for person in people for seconds in person.took_s]
        if len(took) > 1:
            figures.batch_p99_s = statistics.quantiles(took, n=100, method="inclusive")[98]


def measure_faults(plan: Plan, folder: Path | None, *, say: Callable[[str], None]) -> Figures:
    """Carry the plan out; an empty `folder` keeps the hosts' folders and logs, and None keeps nothing."""
    begun = time.monotonic()
    with ending_in_order(), ExitStack() as stack:
        place = folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place.mkdir(parents=True, exist_ok=True)
        made = stack.enter_context(cluster(place.resolve()))
        return Run(plan, made, lambda words: say(f"{time.monotonic() - begun:6.1f} s  {words}")).execute()


def as_row(figures: Figures) -> dict[str, object]:
    """For a program."""
    return asdict(figures) | {
        "faults": figures.answer_faults + figures.trial_faults,
        "orphans": len(figures.orphans),
        "orphaned": figures.orphans,
        "takeovers": len(figures.takeovers),
        "slowest_takeover_s": figures.slowest_takeover_s,
        "slowest_takeovers": [asdict(one) for one in sorted(figures.takeovers, key=_slowness)[:5]],
    }


def _slowness(takeover: Takeover) -> float:
    return -takeover.seconds


def as_text(figures: Figures) -> str:
    """For a person."""
    slowest = figures.slowest_takeover_s
    lines = [
        f"{figures.answer_faults} faults while {figures.answers} answers were given, "
        f"{figures.trial_faults} while {figures.trials} trials trained; {figures.seconds:.0f} s",
        f"lost {figures.lost}, doubled {figures.doubled}, orphans {len(figures.orphans)}, "
        f"different {figures.different}",
        f"{len(figures.takeovers)} takeovers"
        + ("" if slowest is None else f", the slowest after {slowest:.1f} s"),
        *(
            f"{row['web']} web processes: {row['pairs_per_s']:.0f} pairs/s, p99 {row['p99_ms']:.0f} ms"
            for row in figures.speed
        ),
    ]
    if not figures.network:
        lines.append("Hosts were processes alone, and none was cut: that needs root and iproute2.")
    return "\n".join(lines)
