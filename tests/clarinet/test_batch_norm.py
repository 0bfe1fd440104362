"""Batch normalisation with statistics per domain: torch's own, kept apart."""

import copy

import pytest
import torch
from torch import nn

from clarinet.networks.classifier import SOURCE, TARGET
from clarinet.networks.layers import DomainBatchNorm, replace_batch_norms
from clarinet.recipes.choices import Architecture
from tests.clarinet.factories import make_network, noise

pytestmark = pytest.mark.long


class TestDomainBatchNorm:
    @pytest.mark.parametrize("per_domain", [False, True])
    def test_it_equals_torchs_own(self, per_domain: bool) -> None:
        reference = nn.BatchNorm2d(5, eps=1e-3, momentum=0.3)
        with torch.no_grad():
            reference.weight.copy_(noise(5))
            reference.bias.copy_(noise(5) - 1)
        own = DomainBatchNorm.like(reference, per_domain=per_domain)
        batches = [3 * noise(4, 5, 6, 6), noise(2, 5, 6, 6) - 1]

        for x in batches:
            torch.testing.assert_close(own(x), reference(x))
        own.eval(), reference.eval()

        torch.testing.assert_close(own(batches[0]), reference(batches[0]))

    def test_replacing_keeps_every_value_of_a_trained_network(self) -> None:
        network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Sequential(nn.BatchNorm2d(4)))
        network(5 * noise(8, 3, 9, 9))
        network.eval()
        expected = network(noise(2, 3, 9, 9))

        replace_batch_norms(network, per_domain=True)

        assert not any(isinstance(module, nn.BatchNorm2d) for module in network.modules())
        torch.testing.assert_close(network(noise(2, 3, 9, 9)), expected)

    def test_one_value_per_channel_takes_the_running_statistics(self) -> None:
        norm = DomainBatchNorm(3, per_domain=True).train()

        torch.testing.assert_close(norm(noise(1, 3)), noise(1, 3), atol=1e-4, rtol=0)
        assert torch.equal(norm.mean, torch.zeros(2, 3))

    @pytest.mark.parametrize("architecture", ["dann", "dtn", "conv-large", "resnet18", "efficientnet_b0"])
    def test_each_domain_keeps_its_own_statistics(self, architecture: Architecture) -> None:
        model = make_network(architecture).eval()
        images = noise(8, 3, 32, 32)
        source, target = model(images, SOURCE)[1], model(images, TARGET)[1]
        assert torch.equal(source, target)

        model.train()
        model(5 + images, TARGET)
        model.eval()

        assert torch.equal(model(images, SOURCE)[1], source)
        assert not torch.equal(model(images, TARGET)[1], target)

    @pytest.mark.parametrize("architecture", ["dtn", "conv-large", "resnet18"])
    def test_without_the_switch_both_share_theirs(self, architecture: Architecture) -> None:
        model = make_network(architecture, batch_norm=False).train()
        model(5 + noise(8, 3, 32, 32), TARGET)
        model.eval()

        images = noise(8, 3, 32, 32)

        assert torch.equal(model(images, SOURCE)[1], model(images, TARGET)[1])

    def test_a_copy_looks_at_its_own_norms(self) -> None:
        model = make_network("dtn").eval()
        averaged = copy.deepcopy(model)

        averaged(noise(2, 3, 32, 32), TARGET)
        model(noise(2, 3, 32, 32), SOURCE)

        norms = [module for module in averaged.modules() if isinstance(module, DomainBatchNorm)]
        assert {norm.domain.number for norm in norms} == {TARGET}
