"""Task: send one notice, to a program or by mail."""

from uuid import UUID

import structlog

from app.claims import ClaimLost
from app.clock import utc_now
from app.mail import send_mail
from app.notices import service
from app.notices.posting import NotDelivered, post
from worker.context import Context

WORKER = "notifying"
NOBODY = "Who asked for it is no admin of this installation any more."
NO_MAIL = "The mail server did not take it."

log = structlog.get_logger()


def send_notice(context: Context, notice_id: UUID) -> None:
    """Send a notice that is due, and note what became of it.

    Safe to deliver twice and to lose: the claim lets one worker in. Who is killed after sending and before
    noting it sends it again, under the same id, by which a receiver knows it.
    """
    with context.unit_of_work() as session:
        sending = service.claim_notice(session, notice_id, by=WORKER, now=utc_now())
    if sending is None:
        log.info("notice.not_ours", notice_id=str(notice_id))
        return
    failure = ""
    try:
        _send(context, sending, notice_id)
    except NotDelivered as error:
        failure = str(error)
    try:
        with context.unit_of_work() as session:
            if failure:
                service.note_failure(session, sending.claim, sending.attempt, failure, now=utc_now())
            else:
                service.note_sent(session, sending.claim, now=utc_now())
    except ClaimLost:
        log.warning("notice.lost", notice_id=str(notice_id))
        return
    log.info("notice.sent" if not failure else "notice.failed", notice_id=str(notice_id), why=failure)


def _send(context: Context, sending: service.Sending, notice_id: UUID) -> None:
    if sending.url is not None:
        post(
            context.settings,
            sending.url,
            sending.said,
            notice_id=str(notice_id),
            secret=sending.secret,
            now=utc_now(),
        )
        return
    if sending.email is None:
        raise NotDelivered(NOBODY)
    told = sending.said["data"]
    text = f"{told['words']}\n\n{told['url']}\n"
    if not send_mail(
        context.settings, to=sending.email, subject=f"Clarinet: {told['words']}"[:200], text=text
    ):
        raise NotDelivered(NO_MAIL)
