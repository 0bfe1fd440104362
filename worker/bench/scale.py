"""How the application fares with the number of examples: opening, answers, pages, downloads, memory."""

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import httpx2
import uvicorn
from sqlalchemy import select, text

from app.accounts import service as accounts
from app.accounts.models import Role, User
from app.annotation import service as annotation
from app.annotation.models import AnswerValue
from app.clock import utc_now
from app.fast.answering import answer
from app.fast.leasing import lease_questions, lock_campaign
from app.main import create_app
from worker.bench.rows import add_campaign, add_dataset, add_people, fresh_context
from worker.context import Context
from worker.drawing import check_draws, open_campaign
from worker.precomputing import keep_figures

PEOPLE = 20
PAIRS = 200  # of lease and answer, each measured
LEFT = 2 * PAIRS  # questions that still wait when the pages and downloads are measured
VISITS = 5  # to each page
PAGES = {
    "campaign": "/campaigns/{campaign}",
    "campaigns": "/campaigns",
    "dataset": "/datasets/{dataset}",
    "review": "/campaigns/{campaign}/review",
    "people": "/campaigns/{campaign}/quality",
    "start a run": "/campaigns/{campaign}/runs/new",
    "plan": "/campaigns/{campaign}/plan",
    "audit": "/campaigns/{campaign}/audit",
}
BACKGROUND = {"check of the draws": check_draws, "figures": keep_figures}
DOWNLOADS = ("csv", "jsonl", "parquet", "npz", "label-studio")
# All but the last questions answered, by twenty people in turn: as statements, since a million requests take
# hours. To one in ten the first says yes and a second is asked, who denies one in twenty of these; the third
# denies it as well.
WHICH = "q.campaign_id = :campaign AND q.purpose = 'labelling' AND q.rank < :answered"
PERSON = "(SELECT id FROM scale_person WHERE place = (q.id + {slot}) % :people)"
ID = {"sqlite": "CHAR(32)", "postgresql": "uuid"}
KEY = {"sqlite": "lower(hex(randomblob(16)))", "postgresql": "gen_random_uuid()"}
FIRST_YES, DENIED = "(q.id / 20) % 10 = 0", "(q.id / 200) % 20 = 0"
# By slot: to which questions there is an answer, and what it is.
ANSWERS = (
    ("true", f"CASE WHEN {FIRST_YES} THEN 'yes' ELSE 'no' END"),
    (FIRST_YES, f"CASE WHEN {DENIED} THEN 'no' ELSE 'yes' END"),
    (f"{FIRST_YES} AND {DENIED}", "'no'"),
)
SAID = ", ".join(
    f"sum(CASE WHEN said = '{value}'{also} THEN 1 ELSE 0 END)"
    for also in ("", " AND slot = 0")
    for value in ("yes", "no")
)
ALL_SAID = " UNION ALL ".join(
    f"SELECT {PERSON} AS person, q.id AS id, q.candidate_class AS class, q.slots AS slots, {slot} AS slot, "
    f"{said} AS said FROM question q WHERE {WHICH} AND {asked}".replace("{slot}", str(slot))
    for slot, (asked, said) in enumerate(ANSWERS)
)
ANSWER_MOST = (
    *(
        statement.replace("{slot}", str(slot))
        for slot, (asked, said) in enumerate(ANSWERS)
        for statement in (
            "INSERT INTO answer (question_id, user_id, value, response_ms, key, created_at) "
            f"SELECT q.id, {PERSON}, {said}, 500 + q.id % 1000, {{key}}, :now FROM question q "
            f"WHERE {WHICH} AND {asked}",
            "INSERT INTO lease (question_id, slot, user_id, turn) "
            f"SELECT q.id, {slot}, {PERSON}, 0 FROM question q WHERE {WHICH} AND {asked}",
            f"UPDATE question AS q SET is_waiting = false, slots = {slot} + 1 WHERE {WHICH} AND {asked}",
        )
    ),
    "INSERT INTO tally (campaign_id, user_id, candidate_class, yes, no, first_yes, first_no, unsure, "
    f"finished, timed, active_ms, last_at) SELECT :campaign, person, class, {SAID}, 0, "
    "sum(CASE WHEN slot + 1 = slots THEN 1 ELSE 0 END), count(*), sum(500 + id % 1000), :now "
    f"FROM ({ALL_SAID}) AS answers GROUP BY person, class",
)


@dataclass(slots=True)
class Figures:
    """What was measured for one number of examples; times in seconds, memory in MB of this process."""

    database: str
    examples: int
    opening_s: float = 0.0
    opening_peak_mb: float = 0.0
    questions_per_s: float = 0.0
    fresh_pair_ms: tuple[float, float] = (0.0, 0.0)  # median and 99th percentile
    late_pair_ms: tuple[float, float] = (0.0, 0.0)
    background_s: dict[str, float] = field(default_factory=dict)  # by job
    background_cpu_s: dict[str, float] = field(default_factory=dict)
    background_peak_mb: dict[str, float] = field(default_factory=dict)
    pages_ms: dict[str, float] = field(default_factory=dict)
    page_peak_mb: dict[str, float] = field(default_factory=dict)
    answers_s: dict[str, float] = field(default_factory=dict)
    answers_cpu_s: dict[str, float] = field(default_factory=dict)
    answers_peak_mb: dict[str, float] = field(default_factory=dict)
    labels_s: float = 0.0
    labels_peak_mb: float = 0.0
    base_mb: float = 0.0


class Memory:
    """The most memory this process had while a block ran."""

    def __init__(self) -> None:
        self.peak_mb = resident_mb()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.peak_mb = max(self.peak_mb, resident_mb())


def resident_mb() -> float:
    """Memory of this process now, as Linux counts it."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def measure_scale(database_url: str, examples: int, *, say: Callable[[str], None]) -> Figures:
    """Everything for one number of examples, in an empty database; SQLite if none is named."""
    with fresh_context(database_url) as context:
        figures = Figures(context.database.engine.dialect.name, examples, base_mb=resident_mb())
        _measure(context, figures, say)
        return figures


def _measure(context: Context, figures: Figures, say: Callable[[str], None]) -> None:
    with context.unit_of_work() as session:
        admin, people = add_people(session, PEOPLE)
        token = accounts.create_token(session, admin, "scale", now=utc_now())[1]
        dataset_id = add_dataset(session, admin, figures.examples)
        campaign_id = add_campaign(session, admin, dataset_id)
    say(f"{figures.database}, {figures.examples} examples: opening")
    with Memory() as memory:
        start = time.perf_counter()
        open_campaign(context, campaign_id)
        figures.opening_s = time.perf_counter() - start
    figures.opening_peak_mb = memory.peak_mb
    figures.questions_per_s = figures.examples / figures.opening_s
    figures.fresh_pair_ms = _pairs(context, campaign_id, people)
    say("most of the answers")
    _answer_most(context, campaign_id, figures.examples)
    figures.late_pair_ms = _pairs(context, campaign_id, people)
    for name, job in BACKGROUND.items():
        say(f"in the background: {name}")
        took = _work(partial(job, context, campaign_id))
        figures.background_s[name], figures.background_cpu_s[name], figures.background_peak_mb[name] = took
    with serving(context) as url, httpx2.Client(base_url=url, timeout=600) as client:
        client.headers.update({"Authorization": f"Bearer {token}", "Accept": "text/html"})
        for kind in DOWNLOADS:
            say(f"answers as {kind}")
            took = _download(client, f"/api/v1/campaigns/{campaign_id}/answers?format={kind}")
            figures.answers_s[kind], figures.answers_cpu_s[kind], figures.answers_peak_mb[kind] = took
        say("labels as csv")
        figures.labels_s, _, figures.labels_peak_mb = _download(
            client, f"/api/v1/campaigns/{campaign_id}/labels?format=csv"
        )
        for name, path in PAGES.items():
            say(f"page {name}")
            address = path.format(campaign=campaign_id, dataset=dataset_id)
            figures.pages_ms[name], figures.page_peak_mb[name] = _visits(client, address)


def _pairs(context: Context, campaign_id: UUID, people: list[User]) -> tuple[float, float]:
    """Median and 99th percentile of lease and answer, one question at a time, each a transaction; in ms."""
    took = []
    for number in range(PAIRS):
        person = people[number % len(people)]
        start = time.perf_counter()
        with context.unit_of_work() as session:
            campaign, _ = lock_campaign(session, campaign_id, by=person)
            held = lease_questions(session, campaign, count=1, by=person, now=utc_now()).questions
        submitted = [annotation.SubmittedAnswer(held[0].id, AnswerValue.NO, 900, uuid4())]
        with context.unit_of_work() as session:
            answer(session, campaign_id, submitted, count=0, by=person, now=utc_now())
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took), statistics.quantiles(took, n=100, method="inclusive")[98]


def _answer_most(context: Context, campaign_id: UUID, examples: int) -> None:
    dialect = context.database.engine.dialect.name
    campaign = campaign_id.hex if dialect == "sqlite" else campaign_id
    now = datetime.now(UTC).replace(tzinfo=None) if dialect == "sqlite" else datetime.now(UTC)
    values = {"campaign": campaign, "answered": examples - LEFT, "people": PEOPLE, "now": now}
    with context.unit_of_work() as session:
        # What the measured pairs answered would be answered twice.
        for table in ("answer", "lease", "tally"):
            session.execute(text(f"DELETE FROM {table}"))
        session.execute(
            text(f"CREATE TEMPORARY TABLE scale_person (place INTEGER PRIMARY KEY, id {ID[dialect]})")
        )
        ids = session.scalars(select(User.id).where(User.role == Role.ANNOTATOR).limit(PEOPLE))
        for place, user_id in enumerate(ids):
            shown = user_id.hex if dialect == "sqlite" else str(user_id)
            session.execute(text("INSERT INTO scale_person VALUES (:p, :i)"), {"p": place, "i": shown})
        for statement in ANSWER_MOST:
            session.execute(text(statement.format(key=KEY[dialect])), values)
        session.execute(text("DROP TABLE scale_person"))
    if dialect == "postgresql":
        with context.database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))  # as its own upkeep does within minutes


@contextmanager
def serving(context: Context) -> Iterator[str]:
    """The web process, in a thread of this one so that its memory can be watched."""
    app = create_app(context.settings, database=context.database, publish=context.publish)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def _visits(client: httpx2.Client, address: str) -> tuple[float, float]:
    """Median time of a page in ms, and the most memory while it was made."""
    took = []
    with Memory() as memory:
        for _ in range(VISITS):
            start = time.perf_counter()
            client.get(address).raise_for_status()
            took.append(1000 * (time.perf_counter() - start))
            if took[-1] > 1000 * VISITS:
                break  # it will not become quick
    return statistics.median(took), memory.peak_mb


def _work(job: Callable[[], None]) -> tuple[float, float, float]:
    """Seconds by the clock and of this process, and the most memory."""
    with Memory() as memory:
        start, cpu = time.perf_counter(), time.process_time()
        job()
        took = time.perf_counter() - start, time.process_time() - cpu
    return *took, memory.peak_mb


def _download(client: httpx2.Client, address: str) -> tuple[float, float, float]:
    """Seconds by the clock and of this process (client and server), and the most memory."""

    def read() -> None:
        with client.stream("GET", address) as response:
            response.raise_for_status()
            for _ in response.iter_raw():
                pass

    return _work(read)


def as_row(figures: Figures) -> dict[str, object]:
    """For a program."""
    return asdict(figures)


def as_text(figures: Figures) -> str:
    """For a person."""
    lines = [
        f"{figures.database}, {figures.examples} examples, {figures.base_mb:.0f} MB before",
        f"opening {figures.opening_s:.1f} s, {figures.questions_per_s:.0f} questions/s, "
        f"up to {figures.opening_peak_mb:.0f} MB",
        "lease and answer, median and 99th percentile: at first "
        f"{figures.fresh_pair_ms[0]:.1f} and {figures.fresh_pair_ms[1]:.1f} ms, at the end "
        f"{figures.late_pair_ms[0]:.1f} and {figures.late_pair_ms[1]:.1f} ms",
    ]
    lines += [
        f"{name}, in the background: {took:.1f} s, {figures.background_cpu_s[name]:.1f} s of this process, "
        f"up to {figures.background_peak_mb[name]:.0f} MB"
        for name, took in figures.background_s.items()
    ]
    lines += [
        f"answers as {kind}: {took:.1f} s, {figures.answers_cpu_s[kind]:.1f} s of this process, "
        f"up to {figures.answers_peak_mb[kind]:.0f} MB"
        for kind, took in figures.answers_s.items()
    ]
    lines.append(f"labels as csv: {figures.labels_s:.1f} s, up to {figures.labels_peak_mb:.0f} MB")
    lines += [
        f"page {name}: {took:.0f} ms, up to {figures.page_peak_mb[name]:.0f} MB"
        for name, took in figures.pages_ms.items()
    ]
    return "\n".join(lines)
