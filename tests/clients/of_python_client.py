"""By the client that openapi-python-client makes: given URL, TOKEN, two files; prints what it saw as JSON."""

import json
import sys
import time
from io import BytesIO
from pathlib import Path
from uuid import UUID, uuid4

from clarinet_api import AuthenticatedClient
from clarinet_api.api.annotation import lease_questions, submit_answers
from clarinet_api.api.campaigns import create_campaign, get_campaign, open_campaign
from clarinet_api.api.datasets import create_dataset, get_dataset
from clarinet_api.api.runs import start_run
from clarinet_api.models import (
    AnswerInput,
    AnswersInput,
    AnswerValue,
    CampaignCreate,
    CreateDatasetFilesBody,
    LeaseRequest,
    Problem,
    RunCreate,
)
from clarinet_api.types import File

url, token, *files = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token)


def upload(name: str, file: str) -> object:
    """Send a file; gives the dataset, or the problem."""
    sent = File(BytesIO(Path(file).read_bytes()), file_name="a.npz", mime_type="application/zip")
    return create_dataset.sync(client=client, body=CreateDatasetFilesBody(name=name, file=sent))


def ready(name: str, file: str) -> UUID:
    """Upload and wait."""
    dataset = upload(name, file)
    while dataset.state == "importing":
        time.sleep(0.2)
        dataset = get_dataset.sync(dataset.id, client=client)
    return dataset.id


source, target = ready("source", files[0]), ready("target", files[1])
campaign = create_campaign.sync(
    client=client, body=CampaignCreate(name="made", dataset_id=source, least_card_ms=0, confirm_yes=False)
)
open_campaign.sync(campaign.id, client=client)
while campaign.state != "open":
    time.sleep(0.2)
    campaign = get_campaign.sync(campaign.id, client=client)
leased = lease_questions.sync(campaign.id, client=client, body=LeaseRequest(count=100))
answers = [
    AnswerInput(question_id=question.id, value=AnswerValue.NO, response_ms=900, key=uuid4())
    for question in leased.questions
]
stored = submit_answers.sync(campaign.id, client=client, body=AnswersInput(answers=answers))
run = start_run.sync(
    campaign.id,
    client=client,
    body=RunCreate(target_dataset_id=target, setting="cc", preset="photographs-untrained", seeds=[0]),
    idempotency_key=str(uuid4()),
)
refused = upload("source", files[0])
assert isinstance(refused, Problem)
misspelt = create_campaign.sync(client=client, body=CampaignCreate(name="", dataset_id=source))
print(
    json.dumps(
        {
            "answered": len(stored.results),
            "run": str(run.state) if not isinstance(run, Problem) else run.detail,
            "refused": [refused.status, refused.type_, refused.detail],
            "misspelt": [misspelt.status, misspelt.errors[0].pointer, misspelt.errors[0].detail],
        }
    )
)
