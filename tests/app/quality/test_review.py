"""Questions in doubt: asked again, or settled by an admin."""

import random
from datetime import timedelta
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

import frontend
from app.accounts.errors import NotAllowed
from app.accounts.models import User
from app.annotation import service, texts
from app.annotation.errors import CampaignNotOpen
from app.annotation.models import AnswerValue, Question
from app.campaigns.models import Campaign, CampaignState
from app.labels import service as labelling
from app.quality import service as quality
from app.quality.doubts import is_doubtful
from app.quality.errors import AlreadyDecided, DecisionNotFound, QuestionNotFound, QuestionStillAsked
from app.quality.judging import judge_of, question_answers
from clarinet.files.label_table import LabelKind
from tests import annotators
from tests.app.annotation.test_progress import assert_sums
from tests.factories import NOW, answer, asked_again, make_campaign, make_user, questions_of

HTML = {"accept": "text/html"}
YES, NO, UNSURE = AnswerValue.YES, AnswerValue.NO, AnswerValue.UNSURE


def answered(session: Session, campaign: Campaign, *values: str) -> list[Question]:
    """The first questions answered with these letters: y, n or u, each by somebody new."""
    names = {"y": "yes", "n": "no", "u": "unsure"}
    questions = questions_of(session, campaign)[: len(values)]
    for question, letters in zip(questions, values, strict=True):
        for letter in letters:
            answer(session, campaign, question.id, names[letter])
    return questions


def labels(session: Session, campaign: Campaign) -> dict[int, tuple[str, float]]:
    """Kind and weight by example."""
    return {found.example_id: (found.kind, found.weight) for found in labelling.labels(session, campaign)}


def test_open_are_disputed_and_untold_questions_but_not_waiting_ones(session: Session) -> None:
    campaign = make_campaign(session, examples=8, confirm_yes=True)
    disputed, agreed, _, untold, told_late, _ = answered(
        session, campaign, "ynyn", "yy", "y", "uuu", "yuuu", "n"
    )

    found = quality.open_questions(session, campaign)

    assert {question.id for question in found} == {disputed.id, untold.id, told_late.id}
    assert all(question.kind is None for question in found)
    assert agreed.example_id in labels(session, campaign)


def test_of_two_classes_what_somebody_said_alone_is_open_whether_yes_or_no(session: Session) -> None:
    campaign = make_campaign(
        session, examples=160, class_names=("cat", "dog"), confirm_yes=True, consensus="dawid-skene"
    )
    chance = random.Random(2)
    people = [make_user(session) for _ in range(4)]  # the last one answers at random
    for question in questions_of(session, campaign):
        is_match = chance.random() < 1 / 2
        for person in chance.sample(people, 4):
            session.refresh(question)
            if question.is_waiting:
                is_yes = is_match if person is not people[-1] else chance.random() < 1 / 2
                answer(session, campaign, question.id, "yes" if is_yes else "no", by=person)
    judge = judge_of(session, campaign, num_classes=2)
    rows = session.execute(question_answers(campaign.id)).all()

    found = quality.open_questions(session, campaign)

    assert {item.id for item in found} == {row.id for row in rows if is_doubtful(judge(row), num_classes=2)}
    alone = [item for item in found if item.answers == 1]
    assert {bool(item.yes) for item in alone} == {True, False}
    assert len({row.by for row in rows if row.id in {item.id for item in alone}}) == 1, "his alone"


def test_by_people_doubtful_labels_are_open_too_and_the_worst_come_first(session: Session) -> None:
    campaign = make_campaign(
        session,
        examples=60,
        confirm_yes=True,
        consensus="dawid-skene",
        class_names=[str(k) for k in range(10)],
    )
    good = [make_user(session) for _ in range(3)]
    bad = make_user(session)
    questions = questions_of(session, campaign)
    for question in questions[:20]:  # the bad one says no where two others say yes
        answer(session, campaign, question.id, "yes", by=good[0])
        answer(session, campaign, question.id, "no", by=bad)
        answer(session, campaign, question.id, "yes", by=good[1])
        answer(session, campaign, question.id, "yes", by=good[2])
    for question in questions[20:40]:
        answer(session, campaign, question.id, "no", by=good[0])
    lonely = questions[40]
    answer(session, campaign, lonely.id, "no", by=bad)

    found = quality.open_questions(session, campaign)

    assert [question.id for question in found][-1] == lonely.id
    assert 0 < found[-1].weight < 0.5
    assert labels(session, campaign)[questions[25].example_id][1] > found[-1].weight


def test_asking_again_reaches_another_person(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=2, confirm_yes=True)
    question, done = answered(session, campaign, "uuu", "n")

    assert asked_again(session, campaign, count=5, by=admin) == 1

    session.refresh(question)
    assert (question.least, question.slots, question.is_waiting) == (1, 1, True)
    session.refresh(done)
    assert not done.is_waiting
    assert_sums(session, campaign)
    other = make_user(session)
    assert [q.id for q in annotators.lease(session, campaign, count=5, by=other, now=NOW)] == [question.id]
    answer(session, campaign, question.id, "no", by=other)
    assert quality.open_questions(session, campaign) == []
    assert service.progress(session, campaign, now=NOW).finished == 2
    assert admin.name not in [
        person.name for person in service.progress(session, campaign, now=NOW).annotators
    ]


def test_a_no_that_is_asked_again_can_turn_out_a_yes(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=1, confirm_yes=True)
    (question,) = answered(session, campaign, "yunn")
    people = quality.open_questions(session, campaign)
    assert people == []  # by majority it is settled

    question.least, question.slots, question.is_waiting = 4, 4, True
    session.flush()
    answer(session, campaign, question.id, "yes")

    session.refresh(question)
    assert not question.is_waiting
    assert [found.id for found in quality.open_questions(session, campaign)] == [question.id]
    assert asked_again(session, campaign, count=1, by=admin) == 0  # four people were asked


def test_a_closed_campaign_asks_nothing_again(session: Session, admin: User) -> None:
    campaign = make_campaign(session, state="closed")

    with pytest.raises(CampaignNotOpen):
        asked_again(session, campaign, count=1, by=admin)


class TestNobodyIsLeft:
    def three_who_disagree(self, session: Session) -> tuple[Campaign, Question, list[User]]:
        """Yes, no and yes by the three people at work: a fourth would have to say more."""
        campaign = make_campaign(session, examples=4, confirm_yes=True)
        people = [make_user(session) for _ in range(3)]
        question = questions_of(session, campaign)[0]
        for person, value in zip(people, ("yes", "no", "yes"), strict=True):
            answer(session, campaign, question.id, value, by=person)
        session.refresh(question)
        assert question.is_waiting
        return campaign, question, people

    def test_a_question_that_all_at_work_answered_is_reviewed(self, session: Session, admin: User) -> None:
        campaign, question, _ = self.three_who_disagree(session)

        (found,) = quality.doubts(session, campaign, limit=5, now=NOW).questions

        assert (found.id, found.kind, found.may_be_asked) == (question.id, None, False)
        quality.decide(session, campaign, question.id, YES, by=admin, now=NOW)
        session.refresh(question)
        assert not question.is_waiting
        assert_sums(session, campaign)
        assert labels(session, campaign)[question.example_id][0] is LabelKind.TRUE

    def test_whoever_joins_is_asked_about_it(self, session: Session) -> None:
        campaign, question, _ = self.three_who_disagree(session)
        fourth = make_user(session)

        answer(session, campaign, questions_of(session, campaign)[0].id, "no", by=fourth)
        held = annotators.lease(session, campaign, count=9, by=fourth, now=NOW)

        assert quality.doubts(session, campaign, limit=5, now=NOW).count == 0
        assert question.id in [item.id for item in held]

    @pytest.mark.parametrize("reason", ["paused", "disabled", "away"])
    def test_who_does_not_go_on_is_not_waited_for(self, session: Session, admin: User, reason: str) -> None:
        campaign, question, people = self.three_who_disagree(session)
        fourth = make_user(session)
        others = [item for item in questions_of(session, campaign) if item.id != question.id]
        answer(session, campaign, others[0].id, "no", by=fourth)
        assert quality.doubts(session, campaign, limit=5, now=NOW).count == 0

        if reason == "paused":
            service.pause_person(session, campaign, fourth.id, by=admin, now=NOW)
        elif reason == "disabled":
            fourth.disabled_at = NOW
            session.flush()
        else:
            answer(session, campaign, others[1].id, "no", by=people[0], now=NOW + timedelta(hours=25))
            answer(session, campaign, others[2].id, "no", by=people[1], now=NOW + timedelta(hours=25))

        found = quality.doubts(session, campaign, limit=5, now=NOW).questions
        assert [item.id for item in found] == [question.id]

    def test_closing_leaves_nothing_that_cannot_be_settled(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, examples=8, confirm_yes=True)
        disputed, alone, untold, _ = answered(session, campaign, "yny", "y", "u", "n")
        campaign.state = CampaignState.CLOSED
        session.flush()

        found = quality.doubts(session, campaign, limit=9, now=NOW)

        assert {item.id for item in found.questions} == {disputed.id, alone.id, untold.id}
        assert (found.count, found.askable) == (3, 0)
        quality.decide(session, campaign, alone.id, YES, by=admin, now=NOW)
        assert labels(session, campaign)[alone.example_id] == (LabelKind.TRUE, 1.0)

    def test_only_what_can_be_asked_is_counted_and_asked_again(self, session: Session, admin: User) -> None:
        campaign = make_campaign(session, examples=4, confirm_yes=True, consensus="dawid-skene")
        people = [make_user(session) for _ in range(3)]
        asked_of_all, asked_of_two = questions_of(session, campaign)[:2]
        for person in people:
            answer(session, campaign, asked_of_all.id, "unsure", by=person)
        asked_of_two.least = asked_of_two.slots = 2
        session.flush()
        answer(session, campaign, asked_of_two.id, "no", by=people[0])
        answer(session, campaign, asked_of_two.id, "no", by=people[1])
        ids = [asked_of_all.id, asked_of_two.id]

        doubts = quality.doubts(session, campaign, limit=9, now=NOW)

        assert (doubts.count, doubts.askable) == (1, 0)
        assert quality.most_doubtful(session, campaign, count=9) == []
        assert quality.ask_again(session, campaign, ids, by=admin, now=NOW) == 1
        session.refresh(asked_of_two)
        assert asked_of_two.is_waiting


class TestDecide:
    @pytest.mark.parametrize(
        ("value", "kind"), [(YES, LabelKind.TRUE), (NO, LabelKind.COMPLEMENTARY), (UNSURE, None)]
    )
    @pytest.mark.parametrize("letters", ["ynyn", "uuu", "yy"])
    @pytest.mark.parametrize("consensus", ["majority", "dawid-skene"])
    def test_stands_above_answers_until_it_is_taken_back(
        self,
        *,
        session: Session,
        admin: User,
        value: AnswerValue,
        kind: LabelKind | None,
        letters: str,
        consensus: str,
    ) -> None:
        campaign = make_campaign(session, examples=2, confirm_yes=True, consensus=consensus)
        (question,) = answered(session, campaign, letters)
        before = labels(session, campaign)

        decision = quality.decide(session, campaign, question.id, value, by=admin, now=NOW)

        assert labels(session, campaign) == ({question.example_id: (kind, 1.0)} if kind else {})
        assert labelling.derive(session, campaign.id).labels.weights.shape == ((1,) if kind else (0,))
        assert quality.open_questions(session, campaign) == []
        count, (shown,) = quality.standing_decisions(session, campaign.id, limit=5)
        assert (count, shown.id, shown.value, shown.by_name) == (1, decision.id, value, admin.name)

        quality.take_back_decision(session, campaign, decision.id, by=admin, now=NOW)
        quality.take_back_decision(session, campaign, decision.id, by=admin, now=NOW)
        assert labels(session, campaign) == before
        assert quality.standing_decisions(session, campaign.id, limit=5) == (0, [])
        quality.decide(session, campaign, question.id, NO, by=admin, now=NOW)

    def test_comes_after_the_answers_once_and_from_an_admin(
        self, session: Session, admin: User, annotator: User
    ) -> None:
        campaign = make_campaign(session, examples=2, confirm_yes=True)
        (question, waiting) = answered(session, campaign, "ynyn", "y")

        with pytest.raises(NotAllowed):
            quality.decide(session, campaign, question.id, YES, by=annotator, now=NOW)
        with pytest.raises(QuestionStillAsked):
            quality.decide(session, campaign, waiting.id, YES, by=admin, now=NOW)
        with pytest.raises(QuestionNotFound):
            quality.decide(session, make_campaign(session), question.id, YES, by=admin, now=NOW)
        with pytest.raises(DecisionNotFound):
            quality.take_back_decision(session, campaign, 2**40, by=admin, now=NOW)
        quality.decide(session, campaign, question.id, YES, by=admin, now=NOW)
        with pytest.raises(AlreadyDecided):
            quality.decide(session, campaign, question.id, NO, by=admin, now=NOW)


def test_the_api_settles_and_takes_back(client: TestClient, session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=3, confirm_yes=True)
    question, _ = answered(session, campaign, "ynyn", "uuu")
    session.commit()
    here = f"/api/v1/campaigns/{campaign.id}"

    review = client.get(f"{here}/review", params={"limit": 1}).json()
    made = client.post(f"{here}/decisions", json={"question_id": question.id, "value": "yes"})

    assert (review["open"], len(review["questions"]), review["decided"]) == (2, 1, 0)
    assert made.status_code == 201
    assert made.json()["by_name"] == admin.name
    again = client.post(f"{here}/decisions", json={"question_id": question.id, "value": "no"})
    assert (again.status_code, again.json()["type"]) == (409, "/problems/already-decided")
    assert client.get(f"{here}/review").json()["decisions"][0]["value"] == "yes"
    assert client.post(f"{here}/decisions/{made.json()['id']}/undo").status_code == 204
    assert client.post(f"{here}/review/ask-again", json={"count": 9}).json() == {"asked": 1}


def test_the_page_settles_without_javascript(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=3, confirm_yes=True)
    question, untold = answered(session, campaign, "ynyn", "uuu")
    session.commit()
    here = f"/campaigns/{campaign.id}"

    page = client.get(f"{here}/review", headers=HTML)
    assert "2 said yes, 2 no." in page.text
    assert "Nobody said yes or no, 3 can't tell." in page.text
    assert f"{here}/review" in client.get(here, headers=HTML).text

    assert f'id="question-{untold.id}"' in page.text
    given = {"question_id": question.id, "value": "no", "behind": untold.id}
    sent = client.post(f"{here}/decisions", data=given, headers=HTML)
    assert (sent.status_code, sent.headers["location"]) == (303, f"{here}/review#question-{untold.id}")
    assert "Take back" in client.get(f"{here}/review", headers=HTML).text
    assert client.post(f"{here}/review/ask-again", data={"count": 0}, headers=HTML).status_code == 422
    assert client.post(f"{here}/review/ask-again", data={"count": 5}, headers=HTML).status_code == 303
    assert "Nothing is in doubt" in client.get(f"{here}/review", headers=HTML).text


def test_a_card_and_the_api_tell_all_that_was_said(client: TestClient, session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=3, confirm_yes=True)
    question, _ = answered(session, campaign, "yu", "n")
    answer(session, campaign, question.id, "unusable")
    left_out = make_user(session)
    answer(session, campaign, question.id, "no", by=left_out)
    service.leave_out(session, campaign, left_out.id, by=admin, left_out=True)
    campaign.state = CampaignState.CLOSED
    session.commit()
    here = f"/campaigns/{campaign.id}"

    page = client.get(f"{here}/review", headers=HTML).text
    told = client.get(f"/api/v1{here}/review").json()["questions"]

    assert "1 said yes, 0 no, 1 can't tell, 1 cannot be used. 1 answer more that counts for nothing." in page
    counts = [told[0][name] for name in ("yes", "no", "unsure", "unusable", "uncounted")]
    assert (len(told), counts) == (1, [1, 0, 1, 1, 1])


def test_a_card_asks_what_people_were_asked(client: TestClient, session: Session) -> None:
    campaign = make_campaign(session, examples=2, class_names=("owl", "cat"), confirm_yes=True)
    campaign.class_language = "en-GB"
    (question,) = answered(session, campaign, "uuu")
    session.commit()
    name = campaign.class_names[question.candidate_class]
    article = {"owl": "an", "cat": "a"}[name]

    page = client.get(f"/campaigns/{campaign.id}/review", headers=HTML).text

    assert f"<strong>Is this {article} {name}?</strong>" in page
    source = (Path(frontend.__file__).parent / "static" / "js" / "card.js").read_text(encoding="utf-8")
    assert texts._SOUNDS_LIKE_A_VOWEL.pattern in source, "the screen knows the same sounds"


def test_a_paused_campaign_may_ask_again(session: Session, admin: User) -> None:
    campaign = make_campaign(session, examples=2)
    answered(session, campaign, "uuu", "n")
    campaign.state = CampaignState.PAUSED
    session.flush()

    assert asked_again(session, campaign, count=1, by=admin) == 1
