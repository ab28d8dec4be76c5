"""A method for a part of a model: what becomes of the gradients of the rest."""

import pytest
import torch
from problem import Data, net
from torch.nn.functional import cross_entropy

from sam_repro.methods import build


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", ["sam", "sam_noise", "lpf_sgd"])
def test_the_gradients_of_the_other_parameters_are_one_backwards(name, accumulate):
    """The last pass's, neither added up over passes and steps nor with what was there before; of parts their sum."""
    model, data = net(torch.float64), Data()
    others = [p for n, p in model.named_parameters() if not n.startswith("7.")]
    for p in others:
        p.grad = torch.ones_like(p)
    part = [(n, p) for n, p in model.named_parameters() if n.startswith("7.")]
    method = build(name, part, **({"gamma_end": None} if name == "lpf_sgd" else {}))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for t in range(2):
        passes = []

        def grad_fn(wanted, t=t, passes=passes):
            ids = data.ids(wanted.data, t)
            mine, size = wanted.of(len(ids))
            images, targets = data.images[ids[mine]], data.targets[ids[mine]]
            total = 0.0
            seen = [torch.zeros_like(p) for p in others]
            for x, y in zip(images.chunk(accumulate), targets.chunk(accumulate), strict=True):
                loss = cross_entropy(model(x), y, reduction="sum") / size
                torch._foreach_add_(seen, torch.autograd.grad(loss, others, retain_graph=True))
                loss.backward()
                total += loss.detach()
            if wanted.part > 0:
                torch._foreach_add_(seen, passes[-1])
            passes.append(seen)
            return total

        method.estimate(lambda wanted, f=grad_fn: f(wanted))
        assert len(passes) > 1
        for p, expected in zip(others, passes[-1], strict=True):
            torch.testing.assert_close(p.grad, expected, rtol=1e-12, atol=1e-14)
        optimizer.step()


def test_a_pass_leaves_no_hook_behind():
    from torch.nn.modules import module

    model = net()

    def grad_fn():
        assert module._global_forward_pre_hooks
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build("sam", list(model[7].named_parameters())).estimate(grad_fn)
    assert not module._global_forward_pre_hooks
