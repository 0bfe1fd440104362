"""The presets of each method: what differs from the defaults of the groups. Never imports torch."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Presets = Mapping[str, Mapping[str, Any]]

# The defaults of the groups: the paper's values where it gives them, else as docs/paper.md says (lambda,
# T_s, the data set's pi, one summed step; 5 % of the complementary labels held out).
_PAPER: dict[str, Any] = {}

# What the authors' repository does where it differs from their text, to explain its numbers (USPS and MNIST,
# cc setting). We still take one step where it takes two with one momentum, split the domains by their true
# sizes, and count the rise of the reversal from 0 where it counts from 1.
_PUBLISHED: dict[str, Any] = {
    "epochs": 550,  # 50 without adaptation and 500 with it
    "steps_per_epoch": 468,  # whole batches of 128 in MNIST's 60,000 images
    "drop_last": True,
    "held_out_share": 0.0,
    "weight_decay": 5e-4,
    "second_term_prior": "class",
    "ascent_weight": "count",
    "adaptation_weight": 1.0,
    "adaptation_schedule": "10000-steps",
    "reversal_scale": "classifier",
    "adversarial_gradient": "weights",
    "domain_loss": "mean",
    "entropy_epsilon": 1e-5,
    "entropy_schedule_lead": 1,  # its second counter is 468 at the first adversarial step, the other one 1
    "discriminator_weights": "xavier",
    "second_decay": True,
}

_PLUS: dict[str, Any] = {
    "epochs": 40,
    "steps_per_epoch": 100,
    "step_share": 0.002,
    "checkpoint_every": 2,
    "input_normalisation": "instance",
    "norm_per_domain": True,
    "precision": "bfloat16",
    "optimizer": "adamw",
    "learning_rate": 2e-3,
    "weight_decay": 1e-3,
    "warmup": 0.05,
    "average_decay": 0.995,
    "complementary_loss": "bounded",
    "adaptation_kind": "none",
    "distorted_share": 0.85,
    "distortion_start": 0.0,
    "distortion_full": 0.0,
    "extra_stroke": 0.1,
    "ink_of_colours": True,
    "moment_match": True,
    "recolouring": True,
    "background_blending": True,
    "pretraining_share": 0.15,
    "neighbour_weight": 1.0,
    "target_self_training_start": 0.4,
}

# It is built without a download, and its weights are untrained.
_PHOTOGRAPH_NETWORK: dict[str, Any] = {
    "architecture": "resnet18",
    "image_size": 96,
    "input_normalisation": "imagenet",
    "norm_per_domain": True,
    "batch_size": 32,
    "distortion_kind": "photographs",
}

# What is left of _PLUS without ink, strokes and moments, for who has no trained weights. With them the other
# presets are far better (docs/results/photographs-kept.md).
_PHOTOGRAPHS_UNTRAINED: dict[str, Any] = (
    _PLUS
    | _PHOTOGRAPH_NETWORK
    | {
        "step_share": 0.0,
        "changed_stroke": 0.0,
        "extra_stroke": 0.0,
        "ink_of_colours": False,
        "moment_match": False,
        "recolouring": False,
        "background_blending": False,
        "epochs": 10,
        "steps_per_epoch": 20,
    }
)

# A trained network, as its weights made it: the classes of both domains are found from its features. The
# steps of the fine-tuning see smaller images than the features, which makes them twice as fast.
_PHOTOGRAPHS_QUICK: dict[str, Any] = {
    "epochs": 12,
    "batch_size": 16,
    "architecture": "timm/tf_efficientnet_lite0",
    "pretrained": "hub",
    "image_size": 192,
    "input_normalisation": "imagenet",
    "kept_features": True,
    "optimizer": "adamw",
    "learning_rate": 2e-4,
    "weight_decay": 1e-3,
    "warmup": 0.05,
    "final_learning_rate": 0.0,
    "average_decay": 0.99,
    "complementary_loss": "bounded",
    "adaptation_kind": "none",
    "distortion_kind": "photographs",
}
_PHOTOGRAPHS: dict[str, Any] = _PHOTOGRAPHS_QUICK | {
    "epochs": 24,
    "image_size": 224,
    "fine_tuning_turns": 2,
    "fine_tuning_size": 160,
}

# For the demo: 1,200 small steps on a thousand images are too few to learn features from images alone.
_QUICK: dict[str, Any] = _PLUS | {
    "epochs": 30,
    "steps_per_epoch": 40,
    "step_share": 0.0,
    "batch_size": 64,
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "final_learning_rate": 0.02,
    "average_decay": 0.98,
    "distortion_start": 0.1,
    "distortion_full": 0.3,
    "extra_stroke": 0.0,
    "pretraining_share": 0.0,
    "neighbour_weight": 0.0,
    "source_self_training_start": 0.3,
    "class_floor": 0.5,
    "class_floor_weight": 0.5,
}

# The other values decide nothing; they are the defaults, which runs of earlier versions are read with.
_ALONE: dict[str, Any] = {
    "adaptation_kind": "none",
    "adaptation_weight": 0.01,
    "adversarial_gradient": "whole",
    "entropy_epsilon": 0.0,
    "entropy_schedule_lead": 0,
    "discriminator_weights": "uniform",
    "second_decay": False,
}

# Ordinary adaptation from labels that are, or pass for, true ones: 500 epochs as all of the paper's methods.
_TRUE_ONLY: dict[str, Any] = {"setting": "pc", "complementary_loss": "none"}

# DAN: kernels of Long et al. 2015; step size, decay, whole batches and the rising weight of the authors'
# two-step DAN for USPS -> MNIST.
_DAN: dict[str, Any] = _TRUE_ONLY | {
    "drop_last": True,
    "learning_rate": 5e-3,
    "weight_decay": 5e-4,
    "adaptation_kind": "discrepancy",
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 0,
    "adaptation_schedule": "progress",
}

# CDAN+E: step sizes, weight decay, loss, whole batches, the discriminator's first weights and (that of USPS
# and MNIST for all) start of CDAN's code for digits (Long et al. 2018), which takes one step of all losses;
# the reversal rises over the progress of the run as in DANN (Ganin et al. 2016), and for the entropy's
# gradient an epoch ahead as in that code. It also lowers the classifier's step size every few epochs, takes
# batches of 64 and normalises batches of both domains together, which is not done here.
_CDAN_E: dict[str, Any] = _TRUE_ONLY | {
    "drop_last": True,
    "learning_rate": 0.01,
    "discriminator_learning_rate": 0.01,
    "weight_decay": 5e-4,
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 1,
    "adaptation_schedule": "progress",
    "reversal_scale": "classifier",
    "adversarial_gradient": "weights",
    "domain_loss": "mean",
    "entropy_epsilon": 1e-5,
    "entropy_schedule_lead": 1,
    "discriminator_weights": "xavier",
    "sharpening": 1.0,
}
# DANN (Ganin et al. 2016) within CDAN's code for digits: its step sizes, the features alone, which are the
# whole way of the gradient then; no entropy.
_DANN: dict[str, Any] = _CDAN_E | {
    "conditioning": False,
    "adversarial_gradient": "whole",
    "entropy_epsilon": 0.0,
    "entropy_schedule_lead": 0,
}


# MCC (Jin et al. 2020): its weight of 1 from the start, with step size and weight decay of CDAN's code for
# digits, as above; its own code has none for digits.
_MCC: dict[str, Any] = _TRUE_ONLY | {
    "learning_rate": 0.01,
    "weight_decay": 5e-4,
    "adaptation_kind": "confusion",
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 0,
}


# 500 epochs train GAC, 500 are the ordinary adaptation: the paper says 500 in all, and not what that means
# for two steps.
_TWO_STEPS: dict[str, Any] = {
    "setting": "cc",
    "complementary_loss": "unbiased",
    "epochs": 1000,
    "first_step_share": 0.5,
}


_CE: dict[str, Any] = {"complementary_loss": "cross-entropy"}
_UNCONDITIONED: dict[str, Any] = {"conditioning": False}
_UNSHARPENED: dict[str, Any] = {"sharpening": 1.0}

# The same losses in 2,000 steps, about three minutes on one core: not the paper's protocol, and never its
# numbers. The step size is one at which GAC learns USPS in that time: after 600 steps held-out complementary
# labels put it at 0.73 on the source. lambda keeps the strength of the reversal in preset "paper", 1. Chosen
# by those labels of one seed; the target's were not used.
_SHORT: dict[str, Any] = {
    "epochs": 20,
    "steps_per_epoch": 100,
    "learning_rate": 5e-3,
    "discriminator_learning_rate": 5e-3,
    "adaptation_weight": 1.0,
    "adaptation_start_epoch": 5,
}
_SHORT_ADAPTATION: dict[str, Any] = {"epochs": 20, "steps_per_epoch": 100}
_SHORT_TWO_STEPS: dict[str, Any] = {"epochs": 40, "steps_per_epoch": 100}


# The losses of the paper's methods over the network for photographs, in the steps of `short`. The paper has
# no photographs of more than 32 pixels; nothing was chosen by a measurement.
_PAPERS_PHOTOGRAPHS: dict[str, Any] = _SHORT | _PHOTOGRAPH_NETWORK
_ADAPTED_PHOTOGRAPHS: dict[str, Any] = _SHORT_ADAPTATION | _PHOTOGRAPH_NETWORK
_TWO_STEPS_PHOTOGRAPHS: dict[str, Any] = _TWO_STEPS | _SHORT_TWO_STEPS | _PHOTOGRAPH_NETWORK

# The losses of `short` on kept features of the network of `photographs-quick`. What learns behind it has the
# size of the last layers of DTN, the paper's network for colour pictures, and sees batches of both domains
# mixed, as there. At the step size of `short` the risk of GAC rises above chance's. This one was chosen by
# held-out complementary labels of two sources (docs/results/comparison.md), no target's labels; lambda keeps
# the strength of the reversal at 1.
_KEPT_NETWORK: dict[str, Any] = {
    name: _PHOTOGRAPHS_QUICK[name]
    for name in ("architecture", "pretrained", "image_size", "input_normalisation", "kept_features")
} | {"bottleneck": 512, "distortion_kind": "photographs"}
_PAPERS_KEPT: dict[str, Any] = _SHORT | _KEPT_NETWORK | {"learning_rate": 5e-4, "adaptation_weight": 0.1}
_ADAPTED_KEPT: dict[str, Any] = _SHORT_ADAPTATION | _KEPT_NETWORK
_TWO_STEPS_KEPT: dict[str, Any] = _TWO_STEPS | _SHORT_TWO_STEPS | _KEPT_NETWORK


def _presets(**presets: dict[str, Any]) -> Presets:
    return MappingProxyType({name.replace("_", "-"): changes for name, changes in presets.items()})


METHODS: Mapping[str, Presets] = MappingProxyType(
    {
        "clarinet": _presets(
            paper=_PAPER,
            published=_PUBLISHED,
            short=_SHORT,
            photographs=_PAPERS_PHOTOGRAPHS,
            photographs_quick=_PAPERS_KEPT,
        ),
        "clarinet-plus": _presets(
            digits=_PLUS,
            digits_quick=_QUICK,
            photographs=_PHOTOGRAPHS,
            photographs_quick=_PHOTOGRAPHS_QUICK,
            photographs_untrained=_PHOTOGRAPHS_UNTRAINED,
        ),
        "gac": _presets(
            paper=_ALONE,
            published=_PUBLISHED | _ALONE,
            short=_SHORT | _ALONE,
            photographs=_PAPERS_PHOTOGRAPHS | _ALONE,
            photographs_quick=_PAPERS_KEPT | _ALONE,
        ),
        "gac+dan": _presets(
            paper=_DAN | _TWO_STEPS,
            short=_DAN | _TWO_STEPS | _SHORT_TWO_STEPS,
            photographs=_DAN | _TWO_STEPS_PHOTOGRAPHS,
            photographs_quick=_DAN | _TWO_STEPS_KEPT,
        ),
        "gac+dann": _presets(
            paper=_DANN | _TWO_STEPS,
            short=_DANN | _TWO_STEPS | _SHORT_TWO_STEPS,
            photographs=_DANN | _TWO_STEPS_PHOTOGRAPHS,
            photographs_quick=_DANN | _TWO_STEPS_KEPT,
        ),
        "gac+cdan_e": _presets(
            paper=_CDAN_E | _TWO_STEPS,
            short=_CDAN_E | _TWO_STEPS | _SHORT_TWO_STEPS,
            photographs=_CDAN_E | _TWO_STEPS_PHOTOGRAPHS,
            photographs_quick=_CDAN_E | _TWO_STEPS_KEPT,
        ),
        "gac+mcc": _presets(
            digits=_MCC | _TWO_STEPS,
            short=_MCC | _TWO_STEPS | _SHORT_TWO_STEPS,
            photographs=_MCC | _TWO_STEPS_PHOTOGRAPHS,
            photographs_quick=_MCC | _TWO_STEPS_KEPT,
        ),
        "dan": _presets(
            paper=_DAN,
            short=_DAN | _SHORT_ADAPTATION,
            photographs=_DAN | _ADAPTED_PHOTOGRAPHS,
            photographs_quick=_DAN | _ADAPTED_KEPT,
        ),
        "dann": _presets(
            paper=_DANN,
            short=_DANN | _SHORT_ADAPTATION,
            photographs=_DANN | _ADAPTED_PHOTOGRAPHS,
            photographs_quick=_DANN | _ADAPTED_KEPT,
        ),
        "cdan_e": _presets(
            paper=_CDAN_E,
            short=_CDAN_E | _SHORT_ADAPTATION,
            photographs=_CDAN_E | _ADAPTED_PHOTOGRAPHS,
            photographs_quick=_CDAN_E | _ADAPTED_KEPT,
        ),
        "mcc": _presets(
            digits=_MCC,
            short=_MCC | _SHORT_ADAPTATION,
            photographs=_MCC | _ADAPTED_PHOTOGRAPHS,
            photographs_quick=_MCC | _ADAPTED_KEPT,
        ),
        "clarinet-ce": _presets(
            paper=_CE,
            short=_SHORT | _CE,
            photographs=_PAPERS_PHOTOGRAPHS | _CE,
            photographs_quick=_PAPERS_KEPT | _CE,
        ),
        "clarinet-unconditioned": _presets(
            paper=_UNCONDITIONED,
            short=_SHORT | _UNCONDITIONED,
            photographs=_PAPERS_PHOTOGRAPHS | _UNCONDITIONED,
            photographs_quick=_PAPERS_KEPT | _UNCONDITIONED,
        ),
        "clarinet-unsharpened": _presets(
            paper=_UNSHARPENED,
            short=_SHORT | _UNSHARPENED,
            photographs=_PAPERS_PHOTOGRAPHS | _UNSHARPENED,
            photographs_quick=_PAPERS_KEPT | _UNSHARPENED,
        ),
    }
)
"""Method to preset to what differs from the groups' defaults; a method's first preset is for digits."""
