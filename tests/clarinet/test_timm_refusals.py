"""What a network of timm is refused for, and where its weights come from."""

import hashlib
import sys
from pathlib import Path

import httpx2
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError, RemoteEntryNotFoundError

from clarinet.networks.weights import load_pretrained
from clarinet.recipes.errors import ConfigError
from tests.clarinet.factories import (
    make_network,
)
from tests.clarinet.test_timm import LITE0, backbone_of, save, trained


class TestRefusals:
    @pytest.mark.parametrize(
        ("name", "match"),
        [
            ("resnet_18", r"timm has not; did you mean .*timm/resnet18"),
            ("qqqqqq", r"timm has not; timm\.list_models\(\) has them"),
            ("resnet18.nobody", r"no weights 'nobody' of resnet18; it has .*a1_in1k"),
        ],
    )
    def test_a_network_that_timm_has_not(self, name: str, match: str) -> None:
        with pytest.raises(ConfigError, match=match) as refused:
            make_network(f"timm/{name}")

        assert refused.value.field == "architecture"

    @pytest.mark.parametrize(
        ("name", "size", "match"),
        [
            ("inception_v3", 16, "made for 299"),
            ("mvitv2_tiny", 100, "made for 224 .*out of bounds"),
            ("test_maxvit", 28, "made for 160 .*by zero"),
        ],
    )
    def test_an_image_size_that_the_network_does_not_take(self, name: str, size: int, match: str) -> None:
        with pytest.raises(
            ConfigError, match=rf"image_size is {size}, which timm/{name} .*{match}"
        ) as refused:
            make_network(f"timm/{name}", size=size)

        assert refused.value.field == "image_size"

    def test_timm_is_not_installed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "timm", None)

        with pytest.raises(ConfigError, match=r"needs the package timm: pip install 'clarinet\[train\]'"):
            make_network("timm/test_resnet")

    @pytest.mark.parametrize(
        ("changes", "match"),
        [
            ({"drop": "_blocks.3._bn1.running_var"}, r"lacks blocks\.2\.0\.bn2\.running_var, which timm/"),
            ({"add": "_blocks.99._bn1.weight"}, r"has _blocks\.99\._bn1\.weight, which timm/.* has not"),
            ({"add": "_se.weight"}, r"has _se\.weight, which timm/.* has not"),
        ],
    )
    def test_tensors_too_few_and_too_many_by_name(
        self, changes: dict[str, str], match: str, tmp_path: Path
    ) -> None:
        given = torch.load(LITE0, weights_only=True)
        given.pop(changes.get("drop"), None)
        given |= {changes["add"]: torch.zeros(1)} if "add" in changes else {}
        torch.save(given, tmp_path / "weights.pth")

        with pytest.raises(ConfigError, match=match):
            load_pretrained(
                backbone_of(make_network("timm/tf_efficientnet_lite0")), str(tmp_path / "weights.pth")
            )

    @pytest.mark.parametrize("other", ["test_byobnet", "test_vit"])
    def test_weights_of_another_network(self, other: str, tmp_path: Path) -> None:
        origin = save(trained(other), tmp_path / "weights.safetensors")

        with pytest.raises(ConfigError, match=r"weights\.safetensors (lacks|in)|in weights\.safetensors"):
            load_pretrained(backbone_of(make_network("timm/test_efficientnet")), origin)


@pytest.mark.parametrize("repository_has", ["model.safetensors", "pytorch_model.bin"])
def test_a_download_from_the_hugging_face_hub(
    repository_has: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(repository: str, file: str, *, revision: str | None) -> str:
        assert (repository, revision) == ("timm/test_resnet.r160_in1k", None)
        if file != repository_has:
            response = httpx2.Response(404, request=httpx2.Request("GET", "https://example.org"))
            raise RemoteEntryNotFoundError("there is no such file", response=response)
        if file.endswith(".bin"):
            torch.save(trained("test_resnet").state_dict(), tmp_path / file)
            return str(tmp_path / file)
        return save(trained("test_resnet"), tmp_path / file)

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)

    found = load_pretrained(backbone_of(make_network("timm/test_resnet")), "hub")

    assert found.name == f"timm/test_resnet.r160_in1k/{repository_has}"
    assert found.digest == hashlib.sha256((tmp_path / repository_has).read_bytes()).hexdigest()


def test_without_a_network_the_hub_is_refused_with_an_address_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def download(*_: object, **__: object) -> None:
        raise LocalEntryNotFoundError("no network")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    told = r"downloaded from https://huggingface\.co/timm/test_resnet\S+ \(no network\); fetch the file where"

    with pytest.raises(ConfigError, match=told):
        load_pretrained(backbone_of(make_network("timm/test_resnet")), "hub")


def test_a_network_without_trained_weights_says_so() -> None:
    with pytest.raises(ConfigError, match=r"timm has no trained weights of timm/regnetz_005"):
        load_pretrained(backbone_of(make_network("timm/regnetz_005")), "hub")
