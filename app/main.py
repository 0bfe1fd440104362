"""create_app(): wiring only."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from anyio import to_thread
from fastapi import FastAPI

from app import contract, health, language_choice, metrics, problem_pages, problems
from app.accounts import api as accounts_api
from app.accounts import own_pages as accounts_own_pages
from app.accounts import pages as accounts_pages
from app.accounts import people_pages as accounts_people_pages
from app.accounts.limits import SignInLimit
from app.accounts.organisation import pages as organisation_pages
from app.accounts.organisation.opening import provider_of
from app.accounts.uses import EVERY_S, Uses
from app.annotation import api as annotation_api
from app.annotation import image_api as annotation_image_api
from app.annotation import pages as annotation_pages
from app.campaigns import api as campaigns_api
from app.campaigns import dataset_pages
from app.campaigns import pages as campaigns_pages
from app.compression import Compressed
from app.datasets import api as datasets_api
from app.datasets import pages as datasets_pages
from app.db import Database, Publish, connect
from app.deps import Guard
from app.disk import api as disk_api
from app.disk import pages as disk_pages
from app.fast.layer import FastLayer
from app.fast.writing import Writer
from app.gate import Gate
from app.hardening import BodyLimit, SecurityHeaders
from app.heads import HeadOfGet
from app.jobs import publisher
from app.journal import api as journal_api
from app.journal import pages as journal_pages
from app.labels import api as labels_api
from app.labels import downloads as labels_downloads
from app.labels import pages as labels_pages
from app.lateness import Lateness
from app.logs import RequestLog, configure_logs
from app.members import api as members_api
from app.members import join_pages as members_join_pages
from app.members import pages as members_pages
from app.mistakes import api as mistakes_api
from app.mistakes import files as mistakes_files
from app.mistakes import pages as mistakes_pages
from app.notices import api as notices_api
from app.notices import pages as notices_pages
from app.pages import FRONTEND, VersionedFiles
from app.planning import api as planning_api
from app.planning import pages as planning_pages
from app.proxies import UntrustedProxy
from app.quality import api as quality_api
from app.quality import pages as quality_pages
from app.quality import picture_pages as quality_picture_pages
from app.registry import api as registry_api
from app.registry import belief_api as registry_belief_api
from app.registry import belief_pages as registry_belief_pages
from app.registry import downloads as registry_downloads
from app.registry import evaluation_api as registry_evaluation_api
from app.registry import evaluation_pages as registry_evaluation_pages
from app.registry import pages as registry_pages
from app.registry import predict_api as registry_predict_api
from app.registry import predict_pages as registry_predict_pages
from app.registry.inference.limits import MOST_BYTES
from app.registry.predict_layer import PredictLayer
from app.registry.predictor import Predictor
from app.runs import api as runs_api
from app.runs import compare_pages as runs_compare_pages
from app.runs import expecting_api as runs_expecting_api
from app.runs import list_pages as runs_list_pages
from app.runs import live_pages as runs_live_pages
from app.runs import pages as runs_pages
from app.runs import steering_api as runs_steering_api
from app.runs import steering_pages as runs_steering_pages
from app.runs import sweep_pages as runs_sweep_pages
from app.runs.events import Streams
from app.settings import Settings
from app.stores.chosen import storage_of
from app.tracing import spans
from app.tracing.requests import TracedRequests

API = "/api/v1"
# In this order where paths overlap: /campaigns/new before /campaigns/{campaign_id}.
PAGES = (
    accounts_pages,
    accounts_own_pages,
    accounts_people_pages,
    organisation_pages,
    datasets_pages,
    dataset_pages,
    campaigns_pages,
    annotation_pages,
    members_pages,
    members_join_pages,
    quality_pages,
    quality_picture_pages,
    labels_pages,
    runs_compare_pages,
    runs_list_pages,
    runs_sweep_pages,
    runs_pages,
    runs_live_pages,
    runs_steering_pages,
    planning_pages,
    registry_pages,
    disk_pages,
    registry_predict_pages,
    registry_evaluation_pages,
    registry_belief_pages,
    mistakes_pages,
    mistakes_files,
    journal_pages,
    notices_pages,
)
# The framework tries one route after the other, a hundred in a millisecond: what is called for each picture
# comes first, by annotators and by who predicts.
APIS = (
    annotation_api,
    annotation_image_api,
    registry_predict_api,
    datasets_api,
    accounts_api,
    campaigns_api,
    members_api,
    quality_api,
    labels_api,
    labels_downloads,
    runs_api,
    runs_expecting_api,
    runs_steering_api,
    planning_api,
    registry_api,
    registry_downloads,
    disk_api,
    registry_evaluation_api,
    registry_belief_api,
    mistakes_api,
    journal_api,
    notices_api,
)
# Where annotators lease and answer, and where files are sent to.
ANSWERING_PATHS = re.compile(rf"{API}/campaigns/[^/]+/(questions|answers|undo|leases/(renew|release))")
UPLOAD_PATHS = re.compile(rf"{API}/datasets|/datasets/new|({API})?/campaigns/[^/]+/imports")
PICTURE_PATHS = re.compile(rf"({API})?/models/.+/predict|{API}/model-names/.+/predict")


def create_app(
    settings: Settings | None = None,
    *,
    database: Database | None = None,
    publish: Publish | None = None,
    answering: Literal["fast", "plain"] = "fast",
) -> FastAPI:
    """The web process. Tests pass their own database and publisher; servers take all from the environment.

    Into a passed database nothing is written but by requests: when tokens were last used stays in memory.
    `answering` says what serves annotators: `app.fast`, or for comparison the framework, as any other route.
    """
    settings = settings or Settings()
    configure_logs(settings)
    spans.begin(settings, "web")
    settings.data_dir.mkdir(parents=True, exist_ok=True)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # A database that was passed may be one connection, as in tests: no thread writes there unasked.
        writing = asyncio.create_task(_write_uses(uses)) if database is None else None
        yield
        if writing:
            writing.cancel()
        await to_thread.run_sync(predictor.close)
        if database is None:
            await to_thread.run_sync(uses.write_down)
            if writer:
                writer.close()
            app.state.database.dispose()
        await to_thread.run_sync(spans.end)

    app = FastAPI(
        title="Clarinet",
        version="1",
        summary="Yes/no labelling and complementary-label domain adaptation",
        lifespan=lifespan,
        dependencies=[Guard],
        openapi_url=f"{API}/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=contract.operation_id,
    )
    app.state.settings = settings
    app.state.database = database or connect(
        settings.sqlalchemy_url, statement_timeout_s=settings.statement_timeout_s
    )
    app.state.publish = publish or publisher(settings)
    uses = app.state.uses = Uses(app.state.database.write)
    writer = Writer(app.state.database, app.state.publish) if answering == "fast" else None
    app.state.storage = storage_of(settings)
    app.state.streams = Streams()
    app.state.patterns = {}  # of paths, as app.pages.path_pattern has looked them up
    predictor = app.state.predictor = Predictor()
    app.state.readiness = health.Readiness(settings, app.state.database, app.state.storage)
    app.state.metrics = metrics.Metrics(app.state.database, settings.data_dir)
    app.state.organisation = provider_of(settings)
    app.state.sign_in_limit = SignInLimit(settings.broker_url)
    app.add_middleware(PredictLayer, prefix=API)
    app.add_middleware(
        BodyLimit,
        upload_paths=UPLOAD_PATHS,
        picture_paths=PICTURE_PATHS,
        small_paths=ANSWERING_PATHS,
        max_upload_bytes=settings.max_upload_mb * 1024 * 1024,
        max_picture_bytes=MOST_BYTES,
    )
    app.add_middleware(Gate)
    if writer:
        app.add_middleware(FastLayer, router=annotation_api.router, prefix=API, writer=writer)
    problems.install(app)
    app.add_middleware(Lateness, unhurried=UPLOAD_PATHS)
    app.add_middleware(Compressed)
    app.add_middleware(HeadOfGet)
    app.add_middleware(SecurityHeaders, is_secure=settings.is_secure)
    app.add_middleware(language_choice.ChosenLanguage)
    app.add_middleware(UntrustedProxy)
    app.add_middleware(RequestLog)
    app.add_middleware(metrics.Measured, metrics=app.state.metrics, prefix=API)
    if settings.traces:
        app.add_middleware(TracedRequests, prefix=API)
    _add_routes(app)
    return app


def _add_routes(app: FastAPI) -> None:
    for feature in APIS:
        app.include_router(feature.router, prefix=API)
    for feature in PAGES:
        app.include_router(feature.router)
    app.router.routes.extend([*health.ROUTES, *metrics.ROUTES])
    app.include_router(problem_pages.router)
    app.include_router(language_choice.router)
    contract.install(app)
    app.mount("/static", VersionedFiles(directory=FRONTEND / "static"), name="static")


async def _write_uses(uses: Uses) -> None:
    """Write down now and then when sessions and tokens were last used."""
    while True:
        await asyncio.sleep(EVERY_S)
        await to_thread.run_sync(uses.write_down)
