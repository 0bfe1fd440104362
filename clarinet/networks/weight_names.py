"""Names of tensors in files of trained weights, from their package's spelling to a backbone's."""

import re
from collections.abc import Mapping

from torch import Tensor

# EfficientNet in PyTorch by L. Melas-Kyriazi, and EfficientNet-Lite after it, count the blocks of all stages
# through; timm counts them by stage. Their first batch normalisation is 0, timm's is 1.
_STEM_AND_HEAD = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}
_EXPANDING = {
    "_expand_conv": "conv_pw",
    "_bn0": "bn1",
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn2",
    "_project_conv": "conv_pwl",
    "_bn2": "bn3",
}
_NOT_EXPANDING = {  # blocks of the first stage
    "_depthwise_conv": "conv_dw",
    "_bn1": "bn1",
    "_project_conv": "conv_pw",
    "_bn2": "bn2",
}
_SQUEEZING = {"_se_reduce": "se.conv_reduce", "_se_expand": "se.conv_expand"}  # Lite has none of it
_BLOCK = re.compile(r"_blocks\.(\d+)\.(_\w+)\.(\w+)")


def in_timms_spelling(given: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of an EfficientNet in its first PyTorch package's spelling, in timm's; other names stay.

    Args:
        given: tensors by the names in a file.
        own: those of timm's network, which say how many blocks each stage has.
    """
    if "_conv_stem.weight" not in given:
        return dict(given)
    blocks = _blocks_of(own)
    expands = {found[1] for name in given if (found := _BLOCK.fullmatch(name)) and found[2] == "_expand_conv"}
    return {_timms(name, blocks, expands): value for name, value in given.items()}


def _timms(name: str, blocks: list[str], expands: set[str]) -> str:
    found = _BLOCK.fullmatch(name)
    if found is None:
        layer, _, leaf = name.rpartition(".")
        return f"{_STEM_AND_HEAD[layer]}.{leaf}" if layer in _STEM_AND_HEAD else name
    number, layer, leaf = found.groups()
    layers = (_EXPANDING if number in expands else _NOT_EXPANDING) | _SQUEEZING
    if int(number) >= len(blocks) or layer not in layers:
        return name
    return f"{blocks[int(number)]}.{layers[layer]}.{leaf}"


def _blocks_of(own: Mapping[str, Tensor]) -> list[str]:
    """The blocks of timm's network, "blocks.STAGE.NUMBER", in their order."""
    places = {tuple(name.split(".")[1:3]) for name in own if name.startswith("blocks.")}
    return [f"blocks.{stage}.{number}" for stage, number in sorted((int(a), int(b)) for a, b in places)]
