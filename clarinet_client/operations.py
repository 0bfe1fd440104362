"""What the client calls: each operation with its address, its fields and what it gives.

A test holds every line against the OpenAPI document.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from clarinet_client.shapes import annotation, campaigns, datasets, people, runs

T = TypeVar("T")
SAFE = {"GET", "PUT", "DELETE"}


@dataclass(frozen=True, slots=True)
class Address:
    """Where something is; `{name}` in the path stands for an id."""

    method: str
    path: str

    def at(self, **places: str) -> str:
        """The path of one thing."""
        return self.path.format_map({name: quote(str(value), safe="") for name, value in places.items()})


@dataclass(frozen=True, slots=True)
class Operation(Address, Generic[T]):
    """One call.

    `gives`: the shape of the answer, None where there is none. `takes`: of what is sent, as JSON or as the
    texts of a form. `is_keyed`: it takes an Idempotency-Key. `twice`: a POST without one that may be
    sent twice.
    """

    gives: type[T] | None
    takes: Any = None
    query: tuple[str, ...] = ()
    is_keyed: bool = False
    twice: bool = False

    @property
    def is_repeatable(self) -> bool:
        """Whether doing it twice is doing it once."""
        return self.method in SAFE or self.is_keyed or self.twice


@dataclass(frozen=True, slots=True)
class Listing(Address, Generic[T]):
    """A list that comes in pages, each with `items` and the key of the next one."""

    of: type[T]
    query: tuple[str, ...] = ()
    is_keyed = False
    is_repeatable = True


@dataclass(frozen=True, slots=True)
class Download(Address):
    """A file, in one of these types. `by_link`: the server may say where a bucket hands it out instead."""

    types: tuple[str, ...]
    query: tuple[str, ...] = ()
    by_link: bool = False


ADD_DATASET = Operation("POST", "/datasets", datasets.Dataset, datasets.NewDataset, is_keyed=True)
LIST_DATASETS = Listing("GET", "/datasets", datasets.Dataset, ("archived",))
GET_DATASET = Operation("GET", "/datasets/{dataset_id}", datasets.Dataset)
DELETE_DATASET: Operation[None] = Operation("DELETE", "/datasets/{dataset_id}", None)
ADD_IMAGES = Operation(
    "POST", "/datasets/{dataset_id}/images", datasets.Version, datasets.FurtherImages, is_keyed=True
)
GET_VERSION = Operation("GET", "/datasets/{dataset_id}/versions/{version_id}", datasets.Version)
LIST_EXAMPLES = Listing(
    "GET", "/datasets/{dataset_id}/examples", datasets.Example, ("split", "true_class", "limit")
)
GET_IMAGE = Download("GET", "/datasets/{dataset_id}/examples/{example_id}/image", ("image/png", "image/jpeg"))

CREATE_CAMPAIGN = Operation("POST", "/campaigns", campaigns.Campaign, campaigns.NewCampaign, is_keyed=True)
LIST_CAMPAIGNS = Listing("GET", "/campaigns", campaigns.Campaign, ("dataset_id", "archived"))
GET_CAMPAIGN = Operation("GET", "/campaigns/{campaign_id}", campaigns.Campaign)
OPEN_CAMPAIGN = Operation("POST", "/campaigns/{campaign_id}/open", campaigns.Campaign, is_keyed=True)
PAUSE_CAMPAIGN = Operation("POST", "/campaigns/{campaign_id}/pause", campaigns.Campaign)
CLOSE_CAMPAIGN = Operation("POST", "/campaigns/{campaign_id}/close", campaigns.Campaign)
ASK_FURTHER = Operation("POST", "/campaigns/{campaign_id}/further", campaigns.Drawings, is_keyed=True)
GET_DRAWINGS = Operation("GET", "/campaigns/{campaign_id}/drawings", campaigns.Drawings)
GET_PROGRESS = Operation("GET", "/campaigns/{campaign_id}/progress", campaigns.Progress)
GET_AUDIT = Operation("GET", "/campaigns/{campaign_id}/audit", campaigns.Audit, query=("recompute",))

# A question that is leased twice is the same question, and an answer has a key of its own.
LEASE = Operation(
    "POST", "/campaigns/{campaign_id}/questions", annotation.Leases, annotation.LeaseRequest, twice=True
)
ANSWER = Operation(
    "POST", "/campaigns/{campaign_id}/answers", annotation.Outcomes, annotation.Answers, twice=True
)
RENEW = Operation(
    "POST", "/campaigns/{campaign_id}/leases/renew", annotation.Renewal, annotation.Empty, twice=True
)
RELEASE: Operation[None] = Operation(
    "POST", "/campaigns/{campaign_id}/leases/release", None, annotation.Empty, twice=True
)
UNDO = Operation("POST", "/campaigns/{campaign_id}/undo", annotation.Undone, annotation.UndoRequest)
# The same annotator by that name with another token; an earlier one, if its answer was lost, ends with time.
MAKE_SIMULATED = Operation(
    "POST", "/simulated-annotators", annotation.SimulatedAnnotator, annotation.NamedOnly, twice=True
)
REVOKE_TOKEN: Operation[None] = Operation("DELETE", "/tokens/{token_id}", None)

INVITE_SEVERAL = Operation(
    "POST", "/invitations/several", people.Invitations, people.NewInvitations, is_keyed=True
)

GET_LABELS = Download(
    "GET",
    "/campaigns/{campaign_id}/labels",
    (
        "text/csv",
        "text/tab-separated-values",
        "application/jsonl",
        "application/vnd.apache.parquet",
        "application/octet-stream",
        "application/json",
    ),
    ("format", "imported"),
)
IMPORT_LABELS = Operation("POST", "/campaigns/{campaign_id}/imports", annotation.LabelImport, is_keyed=True)
GET_IMPORT = Operation("GET", "/campaigns/{campaign_id}/imports/{import_id}", annotation.LabelImport)
LIST_DISAGREEMENTS = Operation(
    "GET", "/campaigns/{campaign_id}/imports/disagreements", annotation.Disagreements
)

START_RUN = Operation("POST", "/campaigns/{campaign_id}/runs", runs.Run, runs.NewRun, is_keyed=True)
LIST_RUNS = Listing("GET", "/runs", runs.RunSummary, ("campaign_id", "dataset_id", "archived"))
GET_RUN = Operation("GET", "/runs/{run_id}", runs.Run)
LIST_METRICS = Listing("GET", "/runs/{run_id}/metrics", runs.Metric)
CANCEL_RUN = Operation("POST", "/runs/{run_id}/cancel", runs.Run)

LIST_MODELS = Listing(
    "GET", "/models", runs.Model, ("run_id", "campaign_id", "dataset_id", "name", "alias", "archived")
)
GET_MODEL = Operation("GET", "/models/{model_id}", runs.Model)
GET_ARCHIVE = Download("GET", "/models/{model_id}/download", ("application/zip",))
# Nothing is stored.
PREDICT_PICTURES = Operation("POST", "/models/{model_id}/predict", runs.Pictures, twice=True)
PREDICT_BY_ALIAS = Operation("POST", "/model-names/{name}/aliases/{alias}/predict", runs.Pictures, twice=True)
ASK_ROUND = Operation("POST", "/models/{model_id}/rounds", campaigns.Drawings, is_keyed=True)
GET_ONNX = Download("GET", "/models/{model_id}/onnx", ("application/octet-stream",), by_link=True)
