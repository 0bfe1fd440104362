"""SYN-DIGITS made anew: the right digit in the middle, the same bytes for the same seed."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import ImageFont
from torch import Tensor

from clarinet.commands.cli import main
from clarinet.data.npz import load_npz
from clarinet.export.models import load_card
from clarinet.recipes.errors import DataError
from clarinet.reproduction.glyphs import DRAWN_FONTS, Glyphs, glyphs
from clarinet.reproduction.synthetic import CHUNK, recipe_of, synthetic_digits


@pytest.fixture(scope="module")
def fonts() -> Glyphs:
    return glyphs()


@pytest.fixture(scope="module")
def many(fonts: Glyphs) -> tuple[Tensor, Tensor]:
    """The first three thousand images of seed 0, and their labels."""
    return drawn(3 * CHUNK, fonts)


def drawn(count: int, fonts: Glyphs, seed: int = 0) -> tuple[Tensor, Tensor]:
    images, labels = zip(*synthetic_digits(count, fonts, seed=seed), strict=True)
    return torch.cat(images), torch.cat(labels)


class TestGlyphs:
    @pytest.mark.long
    def test_digits_fill_their_box_and_leave_a_margin(self, fonts: Glyphs) -> None:
        assert fonts.masks.shape == (DRAWN_FONTS + 3, 10, 64, 64)
        assert float(fonts.masks.min()) == 0
        assert float(fonts.masks.max()) == 1
        edges = [fonts.masks[..., 0, :], fonts.masks[..., -1, :], fonts.masks[..., 0], fonts.masks[..., -1]]
        assert all(float(edge.max()) == 0 for edge in edges)
        heights = (fonts.masks > 0.5).any(3).sum(2)  # (F, 10)
        assert int(heights.min()) >= 36
        assert int(heights.max()) <= 52

    @pytest.mark.long
    def test_the_digits_of_a_font_differ(self, fonts: Glyphs) -> None:
        flat = fonts.masks.flatten(2)
        apart = torch.cdist(flat, flat) + 1e9 * torch.eye(10)  # (F, 10, 10)

        assert float(apart.min()) > 8  # of 64 x 64 pixels in [0, 1]

    @pytest.mark.long
    def test_a_typeset_digit_is_nearest_to_the_same_digit_of_the_drawn_fonts(self, fonts: Glyphs) -> None:
        flat = fonts.masks.flatten(2)
        flat = flat - flat.mean(2, keepdim=True)  # what remains is a correlation
        drawn, typeset = (F.normalize(masks, dim=-1) for masks in (flat[:DRAWN_FONTS], flat[DRAWN_FONTS]))
        likeness = torch.einsum("fdp,tp->tfd", drawn, typeset)  # (10 typeset, F, 10 drawn)

        assert likeness.amax(1).argmax(1).tolist() == list(range(10))

    @pytest.mark.long
    def test_fonts_of_a_folder_are_added(self, tmp_path: Path, fonts: Glyphs) -> None:
        builtin = ImageFont.load_default(20)
        assert isinstance(builtin, ImageFont.FreeTypeFont)
        builtin.path.seek(0)  # type: ignore[union-attr]  # Pillow keeps the font's bytes there
        (tmp_path / "own.ttf").write_bytes(builtin.path.read())  # type: ignore[union-attr]

        more = glyphs(tmp_path)

        assert more.names == (*fonts.names, "own.ttf")
        assert torch.equal(more.masks[-1], fonts.masks[DRAWN_FONTS])

    @pytest.mark.long
    def test_a_folder_without_fonts_is_a_sentence(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="holds no font"):
            glyphs(tmp_path)
        (tmp_path / "broken.ttf").write_bytes(b"no font")
        with pytest.raises(DataError, match=r"broken\.ttf cannot be read as a font"):
            glyphs(tmp_path)


class TestSyntheticDigits:
    @pytest.mark.long
    def test_image_and_label_depend_on_seed_and_position_alone(
        self, fonts: Glyphs, many: tuple[Tensor, Tensor]
    ) -> None:
        few, few_labels = drawn(5, fonts)
        images, labels = many

        assert few.dtype == torch.uint8
        assert few.shape == (5, 32, 32, 3)
        assert torch.equal(few, images[:5])
        assert torch.equal(few_labels, labels[:5])
        assert not torch.equal(images[:3], images[CHUNK : CHUNK + 3])
        assert not torch.equal(few, drawn(5, fonts, seed=1)[0])

    @pytest.mark.long
    def test_all_digits_come_about_equally_often(self, many: tuple[Tensor, Tensor]) -> None:
        counts = torch.bincount(many[1], minlength=10)

        assert int(counts.min()) > 0.8 * len(many[1]) / 10

    @pytest.mark.long
    def test_the_label_is_the_digit_in_the_middle(self, fonts: Glyphs) -> None:
        """With one glyph inked and the others blank, ink shows at the centre exactly under its label."""
        for digit in (0, 1, 7):
            blank = fonts.masks.clone()
            blank[:, [other for other in range(10) if other != digit]] = 0
            blank[:, digit] = 0
            blank[:, digit, 12:52, 24:40] = 1  # a block as high as a digit
            images, labels = drawn(CHUNK, Glyphs(blank, fonts.advances, fonts.names))

            spread = images.float().flatten(1, 2).amax(1) - images.float().flatten(1, 2).amin(1)  # (B, 3)
            centre = images[:, 14:18, 14:18].float().mean((1, 2))
            corner = images[:, [0, 0, -1, -1], [0, -1, 0, -1]].float().median(1).values  # the ground
            inked = (centre - corner).abs().amax(1) > 0.5 * spread.amax(1).clamp(min=20)

            assert bool(inked[labels == digit].float().mean() > 0.98)
            assert bool(inked[labels != digit].float().mean() < 0.02)

    @pytest.mark.long
    def test_ink_is_told_from_ground(self, many: tuple[Tensor, Tensor]) -> None:
        extent = many[0].flatten(1, 2).float()

        assert float((extent.amax(1) - extent.amin(1)).amax(1).min()) > 20


@pytest.mark.long
def test_another_processor_draws_the_same_bytes(many: tuple[Tensor, Tensor]) -> None:
    """One without vector instructions; in float32 it drew 12 of these 3 million bytes otherwise."""
    program = (
        "import sys; from clarinet.reproduction.glyphs import glyphs;"
        "from clarinet.reproduction.synthetic import synthetic_digits;"
        "images, _ = next(synthetic_digits(1024, glyphs(), seed=0));"
        "sys.stdout.buffer.write(images.numpy().tobytes())"
    )
    other = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"ATEN_CPU_CAPABILITY": "default"},
        capture_output=True,
        check=True,
    )

    assert other.stdout == many[0][:1024].numpy().tobytes()


@pytest.mark.parametrize(
    ("comment", "recipe"),
    [
        (b'{"made": "regenerated, seed 4, 63 fonts"}', "regenerated, seed 4, 63 fonts"),
        (b'{"made": "drawn by hand"}', "regenerated, drawn by hand"),
        (b'{"made_by": "clarinet", "seed": 0}', "regenerated, clarinet"),
        (b'{"made": "\\u001b[2J"}', None),
        (b'{"made": "' + 201 * b"x" + b'"}', None),
        (b'{"made": 4}', None),
        (60_000 * b"[", None),
        (b"", None),
    ],
)
def test_a_file_from_anywhere_says_in_a_line_how_it_was_made(
    comment: bytes, recipe: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "made.npz"
    np.savez(path, x_train=np.zeros((2, 32, 32, 3), np.uint8))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = comment

    assert recipe_of(path) == recipe


class TestCommand:
    @pytest.mark.long
    def test_the_same_seed_writes_the_same_bytes_and_says_that_they_are_made(self, tmp_path: Path) -> None:
        for name in ("a.npz", "b.npz"):
            assert main(["make-syn-digits", str(tmp_path / name), "--count", "30", "--seed", "4"]) == 0

        first = (tmp_path / "a.npz").read_bytes()
        arrays = load_npz(tmp_path / "a.npz")
        assert first == (tmp_path / "b.npz").read_bytes()
        assert arrays["x_train"].shape == (30, 32, 32, 3)
        assert len(first) < 0.9 * arrays["x_train"].numel()  # compressed
        assert torch.equal(arrays["y_train"], drawn(30, glyphs(), seed=4)[1])
        assert recipe_of(tmp_path / "a.npz") == f"regenerated, seed 4, {DRAWN_FONTS + 3} fonts"
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    @pytest.mark.long
    def test_a_model_trained_on_them_says_so(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        made, other = tmp_path / "made.npz", tmp_path / "other.npz"
        assert main(["make-syn-digits", str(made), "--count", "40"]) == 0
        arrays: dict[str, Any] = {name: values.numpy() for name, values in load_npz(made).items()}
        arrays |= {name: 255 - arrays[name] for name in ("x_train", "x_test") if name in arrays}
        np.savez(other, **arrays)
        capsys.readouterr()
        words = [
            "train",
            "--source",
            str(made),
            "--target",
            str(other),
            "--method",
            "gac",
            "--preset",
            "short",
        ]
        words += ["--epochs", "1", "--set", "steps_per_epoch=1", "--out", str(tmp_path / "model"), "--json"]

        assert main(words) == 0

        recipe = recipe_of(made)
        assert recipe is not None
        assert json.loads(capsys.readouterr().out.splitlines()[-1])["regenerated"] == {"source": recipe}
        card = load_card(tmp_path / "model" / "model.safetensors")
        assert (card["data"]["source"]["made"], card["data"]["target"]["made"]) == (recipe, None)
        assert f"({recipe})" in (tmp_path / "model" / "MODEL_CARD.md").read_text()

    @pytest.mark.long
    def test_nothing_is_a_sentence(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["make-syn-digits", str(tmp_path / "a.npz"), "--count", "0"]) == 1
        assert "at least 1" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []

    def test_other_files_have_no_recipe(self, tmp_path: Path) -> None:
        (tmp_path / "a.npz").write_bytes(b"no zip")

        assert recipe_of(tmp_path / "a.npz") is None
        assert recipe_of(tmp_path / "missing.npz") is None
