"""Label Studio's JSON, its tasks one by one, as what they say. Pure."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from app.annotation.models import AnswerValue
from app.labels.errors import BadImport
from app.labels.exports import label_studio
from app.labels.importing.said import (
    NOT_LABELS,
    AnswerInFile,
    BadLine,
    Reading,
    answer_of,
    cell,
    person,
    time_of,
    whole_if_any,
)
from app.labels.importing.said import whole as whole_number
from clarinet.files.json_text import KeyTwice, once
from clarinet.files.tables import TAKE_OUT, quoted
from clarinet.files.yes_no import DENYING_IN_NAMES
from clarinet.recipes.counting import many

_NO_JSON = "The file begins like JSON and is none. Nothing was stored."
_SPACE = re.compile(r"[ \t\r\n]*")
# Of a picture here, as exports have it; another server has datasets of other ids, and its own numbers.
_IMAGE = re.compile(r"/datasets/([\da-fA-F-]{32,36})/examples/(\d{1,18})/image(?:[?#].*)?$")
_ONE_CONTROL = "export one control of classes alone, or name the others in ignore_columns"
UPLOADS = "/data/upload/"  # in addresses of pictures that Label Studio was sent
LOCAL_FILES = "/data/local-files/"  # and of those on its disk
_SENT = re.compile(rf"{UPLOADS}\d+/[\da-f]{{8}}-([^/]+)$")
_NUMBERED = re.compile(r"/examples/\d+/image")


@dataclass(slots=True)
class Tasks:
    """The tasks of a file.

    Args:
        text: of the file.
        dataset: id of the campaign's; "" where nobody knows it, and no address of a picture counts.
        ignored: names of controls that are left out.
        remarks: what the admin should know, in sentences; whole once all tasks were read.
    """

    text: str
    dataset: str = ""
    ignored: Sequence[str] = ()
    remarks: list[str] = field(default_factory=list)
    reading: Reading = Reading.EITHER
    _left: Counter[str] = field(default_factory=Counter)  # what was not read, and how often
    _by_address: int = 0  # annotations whose picture the end of an address tells
    _ignored: Counter[str] = field(default_factory=Counter)  # of controls that are left out, as often
    _control: str = ""  # the first that says what a picture is
    _addresses: dict[str, str] = field(default_factory=dict)  # of people, by their number in Label Studio

    def __iter__(self) -> Iterator[AnswerInFile | BadLine]:
        for number, task in enumerate(_items(self.text), 1):
            try:
                yield from self._of_task(task, number)
            except BadLine as bad:
                yield bad
            except (KeyError, TypeError, AttributeError, IndexError, RecursionError):
                yield BadLine(number, "is not what Label Studio exports (its JSON, not JSON-MIN)")
        self.remarks += [f"{many(count, what)} not read." for what, count in sorted(self._left.items())]
        if self._by_address:
            told = many(self._by_address, "annotation")
            self.remarks.append(f"The address of the image told the picture of {told}, by its end.")
        for name in self.ignored:
            if not self._ignored[name]:
                raise BadImport(
                    f"The file has no control {quoted(name)} that could be left out. Nothing was stored."
                )
            left = many(self._ignored[name], "choice")
            self.remarks.append(f"Left out, as was asked for: {left} in the control {quoted(name)}.")

    def _of_task(self, task: dict[str, Any], number: int) -> Iterator[AnswerInFile]:
        data = task["data"]
        if data.get("purpose") in NOT_LABELS:
            self._left["task of the purpose gold or evaluation"] += 1
            return
        annotations = [one for one in task.get("annotations", ()) if not one.get("was_cancelled")]
        if not annotations:
            self._left["task without an annotation"] += 1
        self._left.update("prediction of a model" for _ in task.get("predictions") or ())
        for annotation in annotations:
            yield from self._of_annotation(annotation, data, number)

    def _of_annotation(
        self, annotation: dict[str, Any], data: dict[str, Any], number: int
    ) -> Iterator[AnswerInFile]:
        position = data.get("position")
        filename = cell(str(data.get("filename") or ""), number)
        is_told = bool(filename) or position is not None
        given = data.get("example_id")
        example_id = whole_if_any(given) if is_told else self._example_id(data, number)
        is_by_address = not is_told and example_id is None
        classes: dict[str, str] = {}  # that it is, by control
        for region in annotation["result"]:
            if str(region.get("from_name")) in self.ignored:
                self._ignored[str(region["from_name"])] += 1
                continue
            if region.get("type") != "choices":
                self._left[f"region of the type {str(region.get('type'))[:40]!r}"] += 1
                continue
            note = (region.get("meta") or {}).get("text") or ""
            named = note if isinstance(note, str) else note[0]
            who = self._who(annotation.get("completed_by", named))
            chosen = list(_chosen(region, data, number, classes))
            if chosen and is_by_address and not filename:
                filename = _file_of(data, number)
                self._by_address += 1
            for class_name, value in chosen:
                if value is AnswerValue.YES and str(region["from_name"]) in classes:
                    self._require_one_control(str(region["from_name"]), number)
                yield AnswerInFile(
                    number,
                    filename=filename,
                    position=whole_number(position, number),
                    example_id=example_id,
                    class_name=class_name,
                    value=value,
                    annotator=person(str("" if who is None else who)),
                    answered_at=time_of(annotation.get("created_at") or "", number),
                )

    def _require_one_control(self, control: str, number: int) -> None:
        """Raises BadLine of a second control that chooses classes: what it means, nobody has said."""
        self._control = self._control or control
        if control != self._control:
            told = f"chooses in the control {control[:40]!r}, and others in {self._control[:40]!r}"
            raise BadLine(number, f"{told}; {_ONE_CONTROL}")

    def _who(self, by: Any) -> Any:
        """Whom a task names: by address, where it tells it beside the number."""
        if not isinstance(by, dict):
            return by
        number, address = by.get("id"), by.get("email")
        if number not in (None, "") and address:
            self._addresses.setdefault(person(str(number)), person(str(address)))
        return address or number

    def named(self, said: AnswerInFile) -> AnswerInFile:
        """The same, by the person's address if a task tells it of their number; once all tasks were read."""
        address = self._addresses.get(said.annotator)
        return replace(said, annotator=address) if address else said

    def _example_id(self, data: dict[str, Any], number: int) -> int | None:
        """The picture by its number here, as `example_id` or the address in `image` say; None: neither does.

        Raises:
            BadLine: the address is of another dataset, where the number is another picture's, or both differ.
        """
        told = whole_number(data.get("example_id"), number)
        address = str(data.get("image") or "")
        found = _IMAGE.search(address)
        if found is None:
            if told is None and _NUMBERED.search(address):
                raise BadLine(number, f"names the picture {address[:200]!r}, which is no address of one here")
            return told
        if found[1].replace("-", "").lower() != self.dataset.replace("-", ""):
            raise BadLine(
                number,
                f"is about a picture of the dataset {found[1]}, which is not this campaign's, and a number "
                "means another picture there; give the picture's filename or position in the task's data",
            )
        if told is not None and told != int(found[2]):
            raise BadLine(number, f"says example_id {told}, and {found[2]} in the address of its image")
        return int(found[2])


def _file_of(data: dict[str, Any], number: int) -> str:
    """What the file of a task's image is called, by the end of its address; raises BadLine where none is.

    Label Studio serves local files by `?d=path`, and puts eight digits before the names of those that it was
    sent.
    """
    address = cell(str(data.get("image") or ""), number).replace("\\", "/")
    try:
        parts = urlsplit(address)
    except ValueError:  # a half of a pair of brackets
        parts = urlsplit("")
    path = "" if parts.scheme == "data" else unquote(parts.path)
    if path.endswith(LOCAL_FILES):
        path = parse_qs(parts.query).get("d", [""])[0]
    if sent := _SENT.search(path):
        path = sent[1]
    if "." not in path.rpartition("/")[2].strip("."):
        told = (
            f"has the image {address[:80]!r}, which names no file" if address else "does not say its picture"
        )
        raise BadLine(number, f"{told}; write the file's name as filename into the task's data")
    return path


def _items(text: str) -> Iterator[Any]:
    """The items of a JSON array one by one: a large file as objects takes thirty times its size."""
    place = _past_space(text, 0)
    if text[place] != "[":
        raise BadImport(
            "The file is no list of Label Studio tasks. JSON lines and other JSON are not taken: save the "
            "labels as CSV. Nothing was stored."
        )
    decoder = json.JSONDecoder(object_pairs_hook=once)
    place = _past_space(text, place + 1)
    try:
        while text[place] != "]":
            item, place = decoder.raw_decode(text, place)
            yield item
            place = _past_space(text, place)
            if text[place] == ",":
                place = _past_space(text, place + 1)
            elif text[place] != "]":
                raise BadImport(_NO_JSON)
        if _past_space(text, place + 1) != len(text):
            raise BadImport(_NO_JSON)
    except KeyTwice as bad:
        raise BadImport(
            f"The file has an object with the key {bad.key[:40]!r} twice. Nothing was stored."
        ) from bad
    except (ValueError, RecursionError, IndexError) as error:
        raise BadImport(_NO_JSON) from error


def _words(name: str) -> list[str]:
    """Of a control's name: parted by what is no letter, and by capitals."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("'", ""))
    return re.split(r"[\W\d_]+", apart.casefold())


def _past_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None  # it matches nothing, too
    return found.end()


def _chosen(
    region: dict[str, Any], data: dict[str, Any], number: int, classes: dict[str, str]
) -> Iterator[tuple[str, AnswerValue]]:
    """Class and value of each choice: an answer to the task's class, or classes that it is or is not.

    `classes`: what other controls of the annotation have said that it is, by control.
    """
    choices = [cell(str(choice), number) for choice in region["value"]["choices"]]
    control = str(region["from_name"])
    if control == label_studio.ANSWER:
        for choice in choices:
            yield cell(str(data["class_name"]), number), answer_of(choice, number)
    elif control == label_studio.IS_NOT:
        for choice in choices:
            yield choice, AnswerValue.NO
    else:
        if not DENYING_IN_NAMES.isdisjoint(_words(control)):
            raise BadLine(
                number,
                f"chooses in the control {control[:40]!r}, which sounds like a no; call it not_class if the "
                f"picture is none of what is chosen there, class if it is, or else {TAKE_OUT}",
            )
        if len(choices) > 1:
            raise BadLine(number, f"chooses {len(choices)} classes at once")
        for choice in choices:
            if any(choice != other for other in classes.values()):
                other, said = next(iter(classes.items()))
                told = f"says {said[:40]!r} in {other[:40]!r} and {choice[:40]!r} in {control[:40]!r}"
                raise BadLine(number, f"{told}; {_ONE_CONTROL}")
            classes[control] = choice
            yield choice, AnswerValue.YES
