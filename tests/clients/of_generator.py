"""By the client that openapi-generator makes: given URL, TOKEN, two files; prints what it saw as JSON."""

import json
import sys
import time
from pathlib import Path
from uuid import UUID, uuid4

from clarinet_made import ApiClient, ApiException, Configuration
from clarinet_made.api import AnnotationApi, CampaignsApi, DatasetsApi, RunsApi
from clarinet_made.models import (
    AnswerInput,
    AnswersInput,
    AnswerValue,
    CampaignCreate,
    LeaseRequest,
    Problem,
    RunCreate,
)

url, token, *files = sys.argv[1:]
client = ApiClient(Configuration(host=url, access_token=token))
# Of the types that a body may have this client takes JSON, unless it is told.
FORM = {"_content_type": "multipart/form-data"}


def data_of(file: str) -> tuple[str, bytes]:
    """Name and content."""
    return "a.npz", Path(file).read_bytes()


def ready(name: str, file: str) -> UUID:
    """Upload and wait."""
    dataset = DatasetsApi(client).create_dataset(name=name, file=data_of(file), **FORM)
    while dataset.state == "importing":
        time.sleep(0.2)
        dataset = DatasetsApi(client).get_dataset(dataset.id)
    return dataset.id


def problem_of(call: object, *arguments: object, **named: object) -> Problem:
    """The problem with which a call is refused."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        return error.data
    raise AssertionError("it was not refused")


source, target = ready("source 2", files[0]), ready("target 2", files[1])
campaigns = CampaignsApi(client)
campaign = campaigns.create_campaign(
    CampaignCreate(name="made 2", dataset_id=source, least_card_ms=0, confirm_yes=False)
)
campaigns.open_campaign(campaign.id)
while campaign.state != "open":
    time.sleep(0.2)
    campaign = campaigns.get_campaign(campaign.id)
leased = AnnotationApi(client).lease_questions(campaign.id, LeaseRequest(count=100))
answers = [
    AnswerInput(question_id=question.id, value=AnswerValue.NO, response_ms=900, key=uuid4())
    for question in leased.questions
]
stored = AnnotationApi(client).submit_answers(campaign.id, AnswersInput(answers=answers))
run = RunsApi(client).start_run(
    campaign.id,
    RunCreate(target_dataset_id=target, setting="cc", preset="photographs-untrained", seeds=[0]),
    idempotency_key=str(uuid4()),
)
refused = problem_of(DatasetsApi(client).create_dataset, name="source 2", file=data_of(files[0]), **FORM)
misspelt = problem_of(campaigns.create_campaign, CampaignCreate(name="made 2", dataset_id=uuid4()))
print(
    json.dumps(
        {
            "answered": len(stored.results),
            "run": str(run.state),
            "refused": [refused.status, refused.type, refused.detail],
            "misspelt": [misspelt.status, misspelt.type, misspelt.detail],
        }
    )
)
