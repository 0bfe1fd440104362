"""`clarinet demo`: the whole application, simulated annotators at work in it, and a first run."""

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import UUID

import httpx2
import structlog

from app.errors import AppError
from app.logs import configure_logs
from app.sink import Sink
from clarinet_client import Client, ClientError, Refused
from clarinet_client.shapes.runs import RunChoices, RunSummary
from worker.demo.annotators import Plan, Tally, simulate
from worker.demo.perception import read_truth
from worker.demo.pictures import Pictures, add_pictures, answer_pictures
from worker.demo.setup import Demo, DemoIncomplete, prepare
from worker.local.starting import alone_on, require_free_port
from worker.local.up import asked_to_end, bring_up_to_date, children, keep_up, settings_for
from worker.local.watching import Watch

LEAVE = 60  # questions for the visitor that nobody has answered: about one in ten is a yes
READY_S = 120.0
LOOK_S = 0.3
LOOK_AT_RUN_S = 2.0
TOO_FEW_LABELS = "/problems/too-few-labels"
# From the "no" answers alone, then with the "yes" answers too.
RUNS: tuple[RunChoices, ...] = ({"preset": "quick", "setting": "cc"}, {"preset": "quick", "setting": "pc"})
# The recipe for who has no trained weights, in few steps of small pictures, so that two cores need minutes.
PICTURE_RUNS: tuple[RunChoices, ...] = (
    {
        "preset": "photographs-untrained",
        "setting": "pc",
        "config": {
            "image_size": 72,
            "batch_size": 16,
            "epochs": 8,
            "learning_rate": 1e-3,
            "average_decay": 0.95,  # so few steps would leave a slower average where it began
            "pretraining_share": 0.0,
            "neighbour_weight": 0.0,
            "source_self_training_start": 0.3,
            "class_floor": 0.5,
            "class_floor_weight": 0.5,
        },
    },
)
# Together up to 40 answers a second, so that a run starts within half a minute; then as slow as tired people.
BRISK = Plan(annotators=5, error=0.02, pace=8, batch=10, seed=1, leave=LEAVE + 40)
SLOW = replace(BRISK, pace=0.15, leave=LEAVE)

log = structlog.get_logger()


def run_demo(*, host: str, port: int, data_dir: Path, as_json: bool) -> None:
    """Make what is missing, start everything, and let it run until SIGTERM or Ctrl-C."""
    settings = settings_for(host=host, port=port, data_dir=data_dir)
    require_free_port(host, port)
    log_path = settings.data_dir / "clarinet.log"

    def say(words: str) -> None:
        sys.stderr.write(f"{words}\n")
        sys.stderr.flush()

    with (
        alone_on(settings.data_dir),
        asked_to_end() as ended,
        log_path.open("ab") as output,
        log_path.open("a") as own,
    ):
        configure_logs(settings)
        sink = Sink(own)
        structlog.configure(logger_factory=lambda *_: sink)
        bring_up_to_date(settings)
        demo, target_id, is_new = prepare(settings)
        say(
            f"Made a campaign over scikit-learn's handwritten digits in {data_dir}."
            if is_new
            else f"Going on with what is in {data_dir}."
        )

        def announce() -> None:
            if as_json:
                sys.stdout.write(json.dumps(asdict(demo)) + "\n")
                sys.stdout.flush()
            say(
                f"Clarinet is at {demo.url}\n"
                f"  e-mail    {demo.admin_email}\n"
                f"  password  {demo.admin_password}\n"
                f"Messages of all parts go to {log_path}. Ctrl-C ends everything."
            )

        guide = threading.Thread(
            target=_guide, args=(demo, target_id, ended, announce, say), name="guide", daemon=True
        )
        guide.start()
        watch = Watch(host=host, port=port)
        keep_up(children(settings, host=host, port=port, log=output), ended, watch)
        guide.join(10)


def _guide(
    demo: Demo,
    target_id: UUID,
    ended: threading.Event,
    announce: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    """Wait for the server, let the annotators work, launch the first run, and tell how it goes."""
    try:
        if _wait_until_ready(demo.url, ended):
            announce()
            with Client(demo.url, demo.admin_token) as client:
                _show_the_loop(client, demo, target_id, ended, say)
    except (AppError, ClientError) as error:
        if not ended.is_set():
            say(f"The demo's guide has stopped; the server goes on: {error.detail}")
    except Exception:
        # The edge of a thread: nobody else would hear of it.
        log.exception("demo.guide_failed")


def _wait_until_ready(url: str, ended: threading.Event) -> bool:
    deadline = time.monotonic() + READY_S
    while not ended.wait(LOOK_S):
        try:
            if httpx2.get(f"{url}/readyz", timeout=5).is_success:
                return True
        except httpx2.TransportError:
            pass  # not listening yet
        if time.monotonic() > deadline:
            raise DemoIncomplete("The server does not answer; its messages say why.")
    return False


def _show_the_loop(
    client: Client, demo: Demo, target_id: UUID, ended: threading.Event, say: Callable[[str], None]
) -> None:
    campaign = client.campaigns.get(str(demo.campaign_id))
    truth = read_truth(client, campaign)
    say(f"{BRISK.annotators} simulated annotators answer now; {LEAVE} questions are left for you.")
    with ThreadPoolExecutor(1, thread_name_prefix="pictures") as beside:
        pictures = beside.submit(_add_pictures, demo, ended, say)
        simulate(client, campaign, BRISK, stop=ended, truth=truth, on_progress=lambda _: None)
        if ended.is_set():
            return
        story = _Story(client, demo.url, demo.campaign_id, str(target_id), RUNS, say)
        story.go_on()
        simulate(client, campaign, SLOW, stop=ended, truth=truth, on_progress=story.go_on)
        _follow(story, ended)
        # After those of the digits, which are trained in a minute.
        if (added := pictures.result()) is not None:
            told = _Story(client, demo.url, added.campaign["id"], added.target_id, PICTURE_RUNS, say)
            _follow(told, ended)


def _add_pictures(demo: Demo, ended: threading.Event, say: Callable[[str], None]) -> Pictures | None:
    """The campaign over photographs, answered; None where it could not be made."""
    try:
        with Client(demo.url, demo.admin_token) as client:
            pictures = add_pictures(client, ended)
            say(f"A second campaign asks about photographs: {demo.url}/campaigns/{pictures.campaign['id']}")
            answer_pictures(client, pictures, ended)
            return pictures
    except (AppError, ClientError) as error:
        if not ended.is_set():
            say(f"The campaign over photographs is not there: {error.detail}")
        return None


def _follow(story: "_Story", ended: threading.Event) -> None:
    while not story.is_over and not ended.wait(LOOK_S):
        story.go_on()


@dataclass
class _Story:
    """Launches the runs that no earlier start has launched, one after the other, and tells how each ends."""

    client: Client
    url: str
    campaign_id: str
    target_id: str
    runs: Sequence[RunChoices]
    say: Callable[[str], None]
    told: int = 0  # runs of which the end was told
    looked: float = -LOOK_AT_RUN_S

    @property
    def is_over(self) -> bool:
        """Whether all runs have ended."""
        return self.told == len(self.runs)

    def go_on(self, _: Tally | None = None) -> None:
        """Look at the runs every two seconds until all have ended."""
        if self.is_over or time.monotonic() - self.looked < LOOK_AT_RUN_S:
            return
        self.looked = time.monotonic()
        runs = [*self.client.runs.all(campaign_id=self.campaign_id)]
        if len(runs) > self.told:
            self._tell(runs[-1 - self.told])  # the newest come first
        else:
            self._launch(self.runs[self.told])

    def _launch(self, wanted: RunChoices) -> None:
        try:
            run = self.client.runs.launch(self.campaign_id, self.target_id, **wanted)
        except Refused as refused:
            if refused.type != TOO_FEW_LABELS:
                raise
            return  # a "yes" counts once a second person has given it: ask again at the next look
        self.say(f"Run {run['number']} trains on the answers: {self.url}/runs/{run['id']}")

    def _tell(self, run: RunSummary) -> None:
        if run["state"] in {"queued", "running"}:
            return
        self.told += 1
        accuracy = run["mean_accuracy"]
        figure = "" if accuracy is None else f" with {100 * accuracy:.1f} % on the target"
        why = self._reason(run) if run["state"] == "failed" else "."
        self.say(f"Run {run['number']} has {run['state']}{figure}{why}")

    def _reason(self, run: RunSummary) -> str:
        """Why its first trial failed that did; a trial's failure may go on with lines of its log."""
        trials = self.client.runs.get(run["id"])["trials"]
        reasons = [trial["failure"] for trial in trials if trial["failure"]]
        return f": {reasons[0].splitlines()[0]}" if reasons else "."
