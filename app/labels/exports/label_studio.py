"""Label Studio's JSON: tasks with annotations of <Choices>.

The names below belong to a labelling interface like this one, which an import into Label Studio needs:

    <View>
      <Image name="image" value="$image"/>
      <Choices name="class" toName="image" choice="single"> one <Choice value="..."/> per class </Choices>
      <Choices name="not_class" toName="image" choice="multiple"> the same </Choices>
      <Choices name="answer" toName="image"> one each for yes, no, unsure, unusable </Choices>
    </View>
"""

from collections.abc import Sequence
from typing import Any

IMAGE = "image"
IS = "class"
IS_NOT = "not_class"
ANSWER = "answer"


def data_of(example_id: int, position: int, filename: str | None, image_url: str) -> dict[str, Any]:
    """What a task is about. File name, position and example lead an import back to the picture."""
    return {
        "image": image_url.format(example_id=example_id),
        "example_id": example_id,
        "position": position,
        "filename": filename,
    }


def choice(control: str, chosen: Sequence[str]) -> dict[str, Any]:
    """A region of an annotation's result."""
    return {"from_name": control, "to_name": IMAGE, "type": "choices", "value": {"choices": list(chosen)}}
