"""The number of ranks is part of a run's id where, and only where, it changes the samples that share a forward pass."""

from __future__ import annotations

from itertools import groupby

import pytest

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.models.catalog import BUT_WITH, WITHOUT_BATCH_NORM, timm_names


def id_of(*overrides: str) -> str:
    return run_id(compose(["loop.batch_size=64", *overrides]))


def test_more_ranks_are_another_run_where_batch_norm_sees_less() -> None:
    one, two, four = (id_of(f"runtime.ranks={ranks}") for ranks in (1, 2, 4))
    assert len({one, two, four}) == 3
    assert two == id_of("loop.micro_batch=32"), "a forward pass over as many samples is the same run on one rank"


@pytest.mark.parametrize("fixed", ["method.m=16", "loop.micro_batch=16", "model=vit_s16"])
def test_ranks_are_no_part_of_a_run_whose_numbers_they_leave_alone(fixed: str) -> None:
    assert id_of("method=sam", fixed) == id_of("method=sam", fixed, "runtime.ranks=2")


@pytest.mark.parametrize("own", ["model.drop_path=0.1", "model.dropout=0.1", "model.name=resnet26d"])
def test_timm_models_that_draw_or_normalise_over_a_pass(own: str) -> None:
    assert id_of("model=vit_s16", own) != id_of("model=vit_s16", own, "runtime.ranks=2")


@pytest.mark.parametrize("method", ["esam", "sam_fraction"])
def test_samples_chosen_on_each_rank_make_another_run(method: str) -> None:
    fixed = [f"method={method}", "loop.micro_batch=16"]
    assert len({id_of(*fixed, f"runtime.ranks={ranks}") for ranks in (1, 2, 4)}) == 3
    assert id_of(*fixed, "method.m=16") == id_of(*fixed, "method.m=16", "runtime.ranks=2")


MIXED = ("dataset.stream=true", "augment=none", "augment.mixup=0.2")
LARGER = ("method=sam_larger", "method.ascent_batch=192", "loop.micro_batch=16")
TEXT = ("dataset=grammar", "model=transformer_small", "augment=none", "loop.micro_batch=16")


@pytest.mark.parametrize(
    ("words", "other"),
    [(("loop.micro_batch=12",), True), (("loop.micro_batch=64",), True),  # cut across the ranks' shares
     (("model=vit_s16", "loop.micro_batch=12"), False),
     (LARGER, False), ((*LARGER, "method.ascent_batch=200"), True),
     ((*LARGER, "model=wrn_28_2", "model.dropout=0.1"), True),
     (TEXT, True), ((*TEXT, "model.dropout=0"), False),  # sentences are shared by number and cut by length
     ((*MIXED, "loop.micro_batch=16"), False),
     (("model=vit_s16", *MIXED, "loop.batch_size=66"), True), (("model=vit_s16", "loop.batch_size=66"), False)],
)  # fmt: skip
def test_ranks_count_where_forward_passes_or_partners_would_be_others(words: tuple[str, ...], other: bool) -> None:
    assert (id_of(*words) != id_of(*words, "runtime.ranks=2")) is other


@pytest.mark.parametrize(
    ("words", "other"),
    [(("model=wrn_28_2",), False), (("model=wrn_28_2", "model.dropout=0.3"), True), (("model=vit_s16",), False),
     (("model=vit_s16", "model.drop_path=0.1"), True), (("model=vgg16_bn_fsam",), True), (("model=vgg16_bn",), False),
     (("model=pyramidnet272",), True), (("model=timm", "model.name=resnet26d"), True)],
)  # fmt: skip
def test_a_compiled_model_that_draws_masks_is_another_run(words: tuple[str, ...], other: bool) -> None:
    """Compiled kernels have a generator of their own, so that a seed means other masks there."""
    assert (id_of(*words) != id_of(*words, "runtime.compile=true")) is other


@pytest.mark.slow
def test_the_families_that_are_said_to_have_no_batch_norm_have_none() -> None:
    import timm
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    members = [n for n in timm_names() if n.startswith(WITHOUT_BATCH_NORM) and not any(part in n for part in BUT_WITH)]
    assert len(members) > 100
    families = [list(group) for _, group in groupby(sorted(members), lambda name: name.split("_")[0])]
    with torch.device("meta"):
        for name in dict.fromkeys(family[place] for family in families for place in (0, -1)):
            model = timm.create_model(name)
            assert not any(isinstance(layer, _BatchNorm) for layer in model.modules()), name
