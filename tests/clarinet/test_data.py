"""What enters the library, and how it is refused."""

import dataclasses
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from clarinet.data import npz
from clarinet.data.domains import draw_held_out, prepare
from clarinet.data.feeding import taken
from clarinet.data.fingerprint import fingerprint
from clarinet.data.npz import load_npz
from clarinet.recipes.errors import DataError, FilesLeftOut
from clarinet.run.relabelling import with_pseudo_labels
from tests.clarinet.factories import in_memory, make_config, make_data

CPU = torch.device("cpu")


class TestTrainData:
    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"num_classes": 1}, "at least 2 classes"),
            ({"source_images": torch.zeros(8, 28, 28)}, "uint8"),
            ({"source_images": torch.zeros(0, 28, 28, dtype=torch.uint8)}, "empty"),
            ({"target_images": torch.zeros(8, 28, 28, 4, dtype=torch.uint8)}, "shape"),
            ({"target_images": torch.zeros(28, 28, dtype=torch.uint8)}, "shape"),
            (
                {"source_images": torch.zeros(32, 32, 3, dtype=torch.uint8)},
                r"one colour image; .* images\[None\]",
            ),
            ({"source_images": np.zeros((8, 28, 28), np.uint8)}, r"not ndarray; torch\.from_numpy makes"),
            ({"target_test_images": [[[0]]]}, "target_test_images must be a tensor"),
            ({"complementary": [0] * 8}, r"complementary must be .*, not list; torch\.tensor makes"),
            ({"complementary": [0] * 8, "example": torch.arange(8)}, "complementary must be a tensor"),
            ({"weights": np.ones(8, np.float32)}, r"weights must be .* torch\.from_numpy"),
            ({"target_test_labels": (0,) * 8}, "target_test_labels must be a tensor"),
            ({"class_shares": [1 / 3] * 3}, "class_shares must be a tensor"),
            ({"complementary": torch.zeros(7, dtype=torch.int64)}, "7 entries for 8"),
            ({"complementary": torch.full((8,), 3)}, "example 0 is 3"),
            ({"complementary": torch.full((8,), -2)}, "example 0 is -2"),
            ({"complementary": torch.zeros(8)}, "complementary has type"),
            ({"true": torch.zeros(8, dtype=torch.int64)}, "both a true and a complementary"),
            ({"weights": torch.full((8,), float("nan"))}, "finite"),
            ({"weights": torch.full((8,), -1.0)}, "at least 0"),
            ({"held_out": torch.zeros(8, dtype=torch.int64)}, "held_out has type"),
            (
                {"held_out": torch.ones(8, dtype=torch.bool), "complementary": torch.full((8,), -1)},
                "held out but is no",
            ),
            ({"example": torch.arange(8) + 1}, "label 7 is about image 8"),
            ({"example": torch.arange(7)}, "7 entries for 8"),
            ({"probabilities": torch.zeros(8)}, "had a probability above 0"),
            ({"probabilities": torch.full((8,), torch.nan)}, "had a probability above 0"),
            ({"transition": torch.ones(3, 2)}, r"expected floats \(3, 3\)"),
            ({"transition": torch.ones(3, 3)}, "transition must be probabilities"),
            ({"class_shares": torch.tensor([1.5, -0.5, 0.0])}, "class_shares must be probabilities"),
            ({"class_shares": torch.arange(3)}, "class_shares has type torch.int64"),
            ({"target_test_labels": None}, "together"),
            ({"target_test_labels": torch.full((8,), -1)}, "target_test_labels"),
            ({"target_test_images": torch.zeros(8, 9, 9, 3, dtype=torch.uint8)}, "both be grey or both"),
        ],
    )
    def test_a_contradiction_is_a_sentence(self, changes: dict[str, Any], match: str) -> None:
        with pytest.raises(DataError, match=match):
            make_data(8, **changes)

    def test_a_target_without_labels_is_fine(self) -> None:
        assert make_data(8, target_test_images=None, target_test_labels=None).target_test_labels is None


class TestPrepare:
    def test_held_out_labels_never_train(self) -> None:
        domains = prepare(make_data(100), make_config(held_out_share=0.1), CPU)

        assert len(domains.held_out_rows) == 10
        assert set(domains.held_out_rows.tolist()).isdisjoint(domains.complementary_rows.tolist())
        assert len(domains.complementary_rows) == 90

    def test_given_held_out_rows_are_taken(self) -> None:
        held_out = torch.zeros(20, dtype=torch.bool)
        held_out[[3, 5]] = True

        domains = prepare(make_data(20, held_out=held_out), make_config(), CPU)

        assert domains.held_out_rows.tolist() == [3, 5]

    def test_labels_of_no_weight_are_not_held_out_either(self) -> None:
        weights = (torch.arange(20) >= 10).float()
        held_out = torch.arange(20) % 2 == 0

        drawn = prepare(make_data(20, weights=weights), make_config(held_out_share=0.5), CPU)
        given = prepare(make_data(20, weights=weights, held_out=held_out), make_config(), CPU)

        assert len(drawn.held_out_rows) == 5
        assert bool((drawn.held_out_rows >= 10).all())
        assert given.held_out_rows.tolist() == [10, 12, 14, 16, 18]

    def test_an_image_is_held_out_with_all_of_its_labels(self) -> None:
        images = torch.arange(50) // 2 * 7  # 25 images with two labels each
        config = make_config(held_out_share=0.2)

        chosen = draw_held_out(images, config)

        assert torch.equal(chosen[::2], chosen[1::2])
        assert int(chosen.sum()) == 10
        assert torch.equal(chosen, draw_held_out(images, config))
        assert not torch.equal(chosen, draw_held_out(images, make_config(held_out_share=0.2, seed=1)))

    def test_the_rows_of_an_image_are_held_out_together(self) -> None:
        source = make_data(30)
        twice = torch.arange(60) // 2
        data = make_data(
            30,
            complementary=source.complementary[twice],
            true=source.true[twice],
            weights=torch.ones(60),
            example=twice,
        )

        domains = prepare(data, make_config(held_out_share=0.2), CPU)

        held_out = domains.example[domains.held_out_rows]
        assert torch.equal(held_out[::2], held_out[1::2])
        assert len(held_out) == 12
        assert set(held_out.tolist()).isdisjoint(domains.example[domains.complementary_rows].tolist())
        assert len(domains.source) == 30

    def test_in_pc_no_image_that_estimates_trains_with_its_true_label(self) -> None:
        # Images 0 to 19 have a no, the first ten a true label as well.
        images = torch.cat([torch.arange(20), torch.arange(10)])
        no = torch.arange(30) < 20
        data = make_data(
            20,
            complementary=torch.where(no, images % 3, -1),
            true=torch.where(no, -1, (images + 1) % 3),
            weights=torch.ones(30),
            example=images,
        )
        config = make_config(setting="pc", held_out_share=0.5)

        drawn = prepare(data, config, CPU)
        given = prepare(dataclasses.replace(data, held_out=torch.arange(30) < 4), config, CPU)
        predicted = prepare(dataclasses.replace(data, pseudo_labelled=True), config, CPU)
        cc = prepare(data, make_config(held_out_share=0.5), CPU)

        assert sorted(drawn.true_rows.tolist()) == list(range(20, 30))
        assert len(drawn.held_out_rows) == 5
        assert int(drawn.held_out_rows.min()) >= 10
        assert given.held_out_rows.tolist() == [0, 1, 2, 3]
        assert given.true_rows.tolist() == list(range(24, 30))
        assert len(predicted.held_out_rows) == 10
        assert len(predicted.true_rows) == 10
        assert len(cc.held_out_rows) == 10
        assert int(cc.held_out_rows.min()) < 10  # where no true label trains

    def test_an_image_knows_the_classes_that_its_training_labels_rule_out(self) -> None:
        data = make_data(
            4,
            complementary=torch.tensor([2, 0, 1, 0, 1]),
            true=torch.full((5,), -1),
            weights=torch.ones(5),
            example=torch.tensor([1, 3, 1, 0, 3]),
            held_out=torch.tensor([False, False, False, True, False]),
        )

        domains = prepare(data, make_config(), CPU)

        assert domains.no_classes.tolist() == [[-1, -1], [2, 1], [-1, -1], [0, 1]]

    def test_cc_uses_no_true_label_and_pc_uses_them(self) -> None:
        data = make_data(20, true_rows=6)

        assert prepare(data, make_config(), CPU).true_rows.tolist() == []
        assert prepare(data, make_config(setting="pc"), CPU).true_rows.tolist() == list(range(6))

    def test_weights_have_mean_one_over_the_rows_used_and_zero_drops_a_row(self) -> None:
        weights = torch.tensor([0.0, 1.0, 3.0] + [2.0] * 17)

        domains = prepare(make_data(20, weights=weights), make_config(held_out_share=0), CPU)

        assert 0 not in domains.complementary_rows
        assert float(domains.weights[domains.complementary_rows].mean()) == pytest.approx(1.0)

    @pytest.mark.parametrize(
        ("changes", "setting", "match"),
        [
            ({"complementary": torch.full((8,), -1)}, "cc", "no complementary label"),
            ({}, "pc", "needs true labels"),
            ({"complementary": torch.ones(8, dtype=torch.int64)}, "cc", "names class 1"),
        ],
    )
    def test_labels_that_cannot_train_are_refused(
        self, changes: dict[str, Any], setting: str, match: str
    ) -> None:
        with pytest.raises(DataError, match=match):
            prepare(make_data(8, **changes), make_config(setting=setting), CPU)

    def test_true_labels_of_one_class_alone_are_refused_where_nothing_else_trains(self) -> None:
        one = torch.ones(8, dtype=torch.int64)

        with pytest.raises(DataError, match="every true label names class 1"):
            prepare(make_data(8, true_rows=8, true=one), make_config("dann", setting="pc"), CPU)
        assert len(prepare(make_data(20, true_rows=1), make_config(setting="pc"), CPU).true_rows) == 1
        learnt = with_pseudo_labels(make_data(8), one, setting="cc")
        assert len(prepare(learnt, make_config("dann", setting="pc"), CPU).true_rows) == 8

    @pytest.mark.filterwarnings("ignore::clarinet.NonUniformLabels")
    @pytest.mark.parametrize(("true", "refused"), [([0, 0], True), ([1, 1], False), ([0, 2], False)])
    def test_noes_about_one_class_alone_are_refused_beside_yeses_of_one_other(
        self, true: list[int], refused: bool
    ) -> None:
        """Noes about class 1 alone, beside yeses: what is not of class 1 may be of class 0, all of it."""
        noes = torch.tensor([-1, -1] + [1] * 18)
        data = make_data(20, complementary=noes, true=torch.tensor(true + [-1] * 18))
        config = make_config(setting="pc", held_out_share=0)

        if refused:
            with pytest.raises(DataError, match="names class 1 and every true label class 0"):
                prepare(data, config, CPU)
        else:
            assert len(prepare(data, config, CPU).true_rows) == 2

    def test_weights_may_be_as_large_as_float32_goes(self) -> None:
        weights = torch.where(torch.arange(20) < 10, 3e38, 1e-30)

        domains = prepare(make_data(20, weights=weights), make_config(held_out_share=0), CPU)

        assert domains.complementary_rows.tolist() == list(range(10))  # the others are nothing beside them
        assert domains.weights[:10].tolist() == [1.0] * 10

    def test_a_matrix_is_checked_as_the_loss_will_have_it(self) -> None:
        never = torch.tensor([[0, 1, 1e-50], [1, 0, 1e-50], [0.5, 0.5, 0]], dtype=torch.float64)

        with pytest.raises(DataError, match="class 2 is never"):
            prepare(make_data(transition=never), make_config(complementary_loss="forward"), CPU)

    def test_one_colour_domain_makes_a_colour_network(self) -> None:
        grey, mixed = (
            prepare(make_data(8, colour_target=colour), make_config(), CPU) for colour in (False, True)
        )

        every = torch.arange(8)
        assert (grey.spec.channels, taken(grey.source, every).shape) == (1, (8, 1, 28, 28))
        assert (mixed.spec.channels, taken(mixed.source, every).shape) == (3, (8, 3, 28, 28))


def test_fingerprint_depends_on_every_label_and_pixel() -> None:
    data = make_data(8)
    images = in_memory(data.source_images).clone()
    images[0, 0, 0] ^= 1

    digests = {
        fingerprint(data),
        fingerprint(make_data(8, source_images=images)),
        fingerprint(make_data(8, complementary=data.complementary.roll(1))),
        fingerprint(make_data(8, weights=2 * data.weights)),
    }

    assert len(digests) == 4
    assert fingerprint(make_data(8)) in digests


def npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array)
    return buffer.getvalue()


def header(shape: str, descr: str = "'|u1'") -> bytes:
    """An npy file that promises a shape and holds four bytes."""
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (117 - len(text)) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + b"abcd"


OTHER_BYTES, NO_HEADER = "holds another number of bytes", "has no header of a numpy array"


def write_zip(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


class TestLoadNpz:
    def test_reads_what_is_there(self, tmp_path: Path) -> None:
        images = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
        np.savez(tmp_path / "a.npz", x_train=images, y_train=np.array([1, 0], dtype=np.uint8), idx=[1])

        with pytest.warns(FilesLeftOut, match='"idx" is no array that is understood and was left out'):
            arrays = load_npz(tmp_path / "a.npz")

        assert set(arrays) == {"x_train", "y_train"}
        assert torch.equal(arrays["x_train"], torch.from_numpy(images))
        assert arrays["y_train"].dtype == torch.int64

    @pytest.mark.parametrize(
        ("member", "match"),
        [
            (header("(99999999999, 28, 28)"), OTHER_BYTES),
            (header("(-1, 28, 28)"), "which no array has"),
            (header("(-2, -2)"), "which no array has"),
            (header("(True, 4)"), "which no array has"),
            (header("(4, "), NO_HEADER),
            (header("(4,)", descr="[1, 2]"), NO_HEADER),
            (header("((4,),)"), NO_HEADER),
            (header("(4,)", descr="'|u1', 3: 4"), NO_HEADER),
            (header("(100000,)"), OTHER_BYTES),
            (header("(1,)", descr="'|O'"), "holds Python objects"),
            (npy(np.zeros(1)), "holds float64 values"),
            (header("(2,)", descr="'<u2'"), "must be uint8"),
            (b"\x93NUMPY\x09\x00", NO_HEADER),
            (b"not an array", NO_HEADER),
            (npy(np.zeros((2, 2), dtype=np.uint8))[:-1], OTHER_BYTES),
        ],
    )
    def test_a_hostile_member_is_refused(self, tmp_path: Path, member: bytes, match: str) -> None:
        path = write_zip(tmp_path / "bad.npz", x_train=member)

        with pytest.raises(DataError, match=match) as caught:
            load_npz(path)

        assert str(path) in str(caught.value)

    def test_other_files_are_refused(self, tmp_path: Path) -> None:
        text = tmp_path / "text.npz"
        text.write_text("hello")
        cut = write_zip(tmp_path / "cut.npz", x_train=npy(np.zeros((50, 28, 28), dtype=np.uint8)))
        cut.write_bytes(cut.read_bytes()[:-40])
        other = write_zip(tmp_path / "other.npz", weights=npy(np.zeros(3)))

        for path in (text, cut, other, tmp_path / "missing.npz", tmp_path):
            with pytest.raises(DataError):
                load_npz(path)

    def test_images_beyond_the_limit_are_told_where_to_go(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        np.savez(tmp_path / "a.npz", x_train=np.zeros((9, 3, 3), np.uint8))
        monkeypatch.setattr(npz, "LARGEST_ARRAY_BYTES", 80)

        with pytest.raises(DataError, match=r"has 81 bytes, but at most 80 .* NpyImages"):
            load_npz(tmp_path / "a.npz")

    def test_too_little_memory_is_a_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_memory(*_: object) -> None:
            raise MemoryError

        np.savez(tmp_path / "a.npz", x_train=np.zeros((2, 3, 3), np.uint8))
        monkeypatch.setattr("clarinet.files.arrays.np.empty", no_memory)

        with pytest.raises(DataError, match=r'x_train\.npy" needs more memory than there is'):
            load_npz(tmp_path / "a.npz")

    def test_nothing_is_unpickled(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "p.npz", x_train=np.array([{"a": 1}], dtype=object))

        with pytest.raises(DataError, match="holds Python objects"):
            load_npz(tmp_path / "p.npz")
