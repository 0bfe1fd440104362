"""Task: take an uploaded file of labels in, once, whatever dies on the way.

The file is read by a process of its own (`python -m app.labels.importing`), because it comes from a stranger.
This side holds the claim, finds the pictures that the file means, and stores what it says.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog

from app import claims
from app.annotation.models import AnswerValue
from app.campaigns.models import Campaign
from app.claims import Claim, ClaimLost
from app.clock import utc_now
from app.journal.writing import ADDRESS
from app.labels import service as labels
from app.labels.models import ImportState, LabelImport
from app.storage import StorageAway, StorageRefused, StoredFileMissing
from app.stores.folder import FolderStorage
from clarinet.files.refusal import MOST_NAMED
from clarinet.recipes.counting import many
from worker.apart import ImportFailed, ImportInterrupted, read_apart
from worker.beating import beating, renewing
from worker.context import Context
from worker.outages import OUTAGES

ROWS_AT_ONCE = 5000  # per transaction: about 0.2 s during which SQLite's other writers wait
MODULE = "app.labels.importing"

_BROKEN = (
    '"{name}" could not be taken in because of a fault on our side, of which the log says more. '
    "Nothing was stored."
)

log = structlog.get_logger()

Fault = tuple[int, str]  # the number of its line or task, and why it cannot be taken


@dataclass(frozen=True, slots=True)
class Work:
    """A claimed import."""

    claim: Claim
    filename: str
    upload: Mapping[str, Any]
    pictures: labels.Pictures

    @property
    def rows(self) -> str:
        """Storage key of what the file says; this attempt's own."""
        return f"{labels.upload_prefix(self.claim.id)}/rows-{self.claim.number}"


def import_labels(
    context: Context, import_id: UUID, *, read: Callable[..., dict[str, Any]] = read_apart
) -> None:
    """Import a file of labels, or do nothing if somebody else is at it; sweep after one that is over."""
    work = _claim(context, import_id)
    if work is None:
        _sweep(context, import_id)
        return
    log.info("labels.import_claimed", import_id=str(import_id), attempt=work.claim.number)
    try:
        with ExitStack() as stack:
            data = work.upload["data"]
            folder = beating(
                lambda: stack.enter_context(context.patient.local(data)), lambda: _renew(context, work)
            )
            counts = _import(context, work, folder, read)
    except ClaimLost:
        log.warning("labels.import_lost", import_id=str(import_id), attempt=work.claim.number)
    except ImportInterrupted as reason:
        _hand_back(context, work, counts=not context.is_stopping())
        log.warning("labels.import_interrupted", import_id=str(import_id), reason=str(reason))
    except StorageRefused as refusal:
        # Another worker's store may not refuse it; the last one says why.
        with context.reading() as session:
            is_last = claims.is_last_attempt(session, work.claim)
        if is_last:
            _fail(context, work, ImportFailed(refusal.sentence))
        else:
            _hand_back(context, work, counts=True)
        log.warning("labels.import_refused", import_id=str(import_id), reason=str(refusal))
        return  # which would refuse the sweep, too
    except StorageAway as reason:
        _hand_back(context, work, counts=False)
        log.warning("labels.import_interrupted", import_id=str(import_id), reason=str(reason))
    except (ImportFailed, StoredFileMissing) as reason:
        failure = reason if isinstance(reason, ImportFailed) else ImportFailed(str(reason))
        _fail(context, work, failure)
        log.info("labels.import_failed", import_id=str(import_id), faults=len(failure.faults))
    except (*OUTAGES, OSError, MemoryError):
        raise  # of this machine: the lease runs out, and another attempt may succeed
    except Exception:  # the edge of the job: our own mistake, which would be made at each attempt
        log.exception("labels.import_broke", import_id=str(import_id))
        _fail(context, work, ImportFailed(_BROKEN.format(name=work.filename)))
    else:
        log.info("labels.import_ended", import_id=str(import_id), answers=counts.total())
    _sweep(context, import_id)


def _claim(context: Context, import_id: UUID) -> Work | None:
    waiting = LabelImport.state == ImportState.IMPORTING
    with context.unit_of_work() as session:
        name = f"{os.uname().nodename}:{os.getpid()}"
        claim = claims.claim(session, LabelImport, import_id, waiting, by=name, now=utc_now())
        if claim is None:
            return None
        labels.delete_answers(session, import_id)  # of an attempt that died
        row = session.get_one(LabelImport, import_id, populate_existing=True)
        pictures = labels.Pictures(session.get_one(Campaign, row.campaign_id))
        return Work(claim, row.filename, row.upload or {}, pictures)


def _import(
    context: Context, work: Work, folder: FolderStorage, read: Callable[..., dict[str, Any]]
) -> Counter[AnswerValue]:
    """Read, check and store; gives how often each value was said."""
    request = {
        "root": str(folder.root.resolve()),
        "data": work.upload["data"],
        "name": work.filename,
        "dataset": str(work.pictures.dataset_id),
        "class_names": work.upload["class_names"],
        "first_class": work.upload.get("first_class"),
        "first_position": work.upload.get("first_position"),
        "ignored": work.upload.get("ignored", []),
        "no_label": work.upload.get("no_label", ""),
        "rows": work.rows,
    }
    result = read(MODULE, request, name=work.filename, beat=lambda _message: _renew(context, work))
    faults: list[Fault] = [(number, why) for number, why in result["faults"]]
    work.pictures.has_ids = result.get("has_ids", False)
    written = 0
    before = labels.Before()
    for rows in labels.read_rows(folder, work.rows, chunk=ROWS_AT_ONCE):
        with context.reading() as session:
            ids = work.pictures.ids(session, rows)
        faults += [
            (row.number, work.pictures.why_not(row))
            for row, id_ in zip(rows, ids, strict=True)
            if id_ is None
        ]
        if len({number for number, _ in faults}) > MOST_NAMED:
            break
        _renew(context, work)
        if not faults:
            with context.unit_of_work() as session:
                claims.renew(session, work.claim, now=utc_now())
                labels.insert_answers(session, work.claim.id, rows, ids, before=before)
        written += len(rows)
    if faults:
        raise _refusal(result["noun"], faults)
    return _settle(context, work, result, written)


def _settle(context: Context, work: Work, result: Mapping[str, Any], written: int) -> Counter[AnswerValue]:
    """Let what was stored count, if it contradicts nothing, or where that is left out.

    Raises:
        ImportFailed: it contradicts itself, or an earlier import.
    """
    noun = result["noun"]
    with context.unit_of_work() as session:
        session.info[ADDRESS] = work.upload["address"]  # of the request that asked for it
        made = session.get(LabelImport, work.claim.id, populate_existing=True)
        if made is None:
            raise ClaimLost
        campaign = session.get_one(Campaign, made.campaign_id)
        session.refresh(campaign, ["classes"])
        made.noun = noun  # what it is compared with tells its own lines, or tasks, too
        settled = labels.settle(session, made, campaign)
        if settled.faults and not work.upload.get("leave_out"):
            raise _refusal(noun, settled.faults, mend=labels.MEND)
        labels.finish_import(
            session,
            work.claim,
            settled,
            noun=noun,
            notes=[*result.get("notes", ()), *settled.words(noun, written=written)],
            faults=_listed(noun, settled.faults),
        )
    return settled.counts


def _refusal(noun: str, faults: Sequence[Fault], *, mend: str = "") -> ImportFailed:
    """Names the first line in its sentence, and up to MOST_NAMED beside it."""
    told = _by_line(faults)
    number, why = next(iter(told.items()))
    first = f"{noun.capitalize()} {number} {why}. Nothing was stored."
    count = f"More than {MOST_NAMED} {noun}s" if len(told) > MOST_NAMED else many(len(told), noun)
    sentence = first if len(told) == 1 else f"{count} cannot be taken in. The first: {first}"
    return ImportFailed(f"{sentence} {mend}.".removesuffix(" ."), faults=_listed(noun, faults))


def _by_line(faults: Sequence[Fault]) -> dict[int, str]:
    """Why each line is wrong, in their order; of one that is wrong in several ways the first."""
    told: dict[int, str] = {}
    for number, why in sorted(faults, key=lambda fault: fault[0]):
        told.setdefault(number, why)
    return told


def _listed(noun: str, faults: Sequence[Fault]) -> list[dict[str, str]]:
    listed = [{"where": f"{noun} {number}", "why": why} for number, why in _by_line(faults).items()]
    return listed[:MOST_NAMED]


def _renew(context: Context, work: Work) -> None:
    if context.is_stopping():
        raise ImportInterrupted("the worker is shutting down")
    renewing(context, work.claim)()


def _hand_back(context: Context, work: Work, *, counts: bool) -> None:
    """Let another worker have it; a shutdown, or storage that is away, is nobody's failed attempt."""
    give_back = claims.release if counts else claims.hand_back
    try:
        with context.unit_of_work() as session:
            give_back(session, work.claim)
    except ClaimLost:
        pass  # somebody has it already


def _fail(context: Context, work: Work, failure: ImportFailed) -> None:
    try:
        with context.unit_of_work() as session:
            claims.release(
                session,
                work.claim,
                state=ImportState.FAILED,
                failure=str(failure),
                faults=failure.faults,
                upload=None,
            )
            labels.delete_answers(session, work.claim.id)
    except ClaimLost:
        pass  # it was taken back meanwhile, or somebody else tries


def _sweep(context: Context, import_id: UUID) -> None:
    """Delete files, and answers of an attempt that died, that no row needs any more."""
    with context.reading() as session:
        row = session.get(LabelImport, import_id)
        state = None if row is None else row.state
    if state is ImportState.IMPORTING:
        return
    context.storage.delete_tree(labels.upload_prefix(import_id))
    if state is ImportState.FAILED:
        with context.unit_of_work() as session:
            labels.delete_answers(session, import_id)
