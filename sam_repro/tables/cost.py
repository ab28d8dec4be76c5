"""What a run will cost before it is started: passes, FLOPs, hours on a named device, memory. Estimates, all of them.

A forward pass takes 2 FLOPs a multiply-add, a backward pass twice the forward's. Hours are FLOPs over the device's peak
in the run's precision, times a utilisation that is common in training; or the launches of its kernels, one after the
other for every shard of a batch, where these take longer. Evaluation is left out, a few percent.
"""

from __future__ import annotations

from dataclasses import dataclass

from sam_repro import own
from sam_repro.config.budget import epochs
from sam_repro.config.reads import is_text
from sam_repro.config.schema import Config, Optimizer, Precision
from sam_repro.data.declared import Split
from sam_repro.errors import UserError, hint
from sam_repro.machine import cores, gpu_name, has_gpus
from sam_repro.models.catalog import Architecture
from sam_repro.models.cost import ModelCost, lookup
from sam_repro.tasks.translation import declared as translation

# Shares of the peak that training commonly reaches: transformers are matrix products, convolutions less so.
TRANSFORMER, CONVOLUTION = 0.35, 0.15
LAYER_SECONDS = 3.5e-4  # and a forward-backward pass takes that long a layer, however small: launches of kernels
CPU_LAYER_SECONDS = 1.2e-3  # on a processor; measured on LPF-SGD's parts of 16 images, with the noise that each draws
SLACK = 1.6  # ten real runs on a CPU took 1.3 to 1.8 times what weights, states and activations take

# Peak TFLOP/s by the makers' data sheets (dense; tensor cores where the precision has them) and memory in GB.
DEVICES: dict[str, tuple[float, float, float]] = {
    "a100": (312.0, 19.5, 80.0),  # bf16/fp16, fp32
    "h100": (989.0, 67.0, 80.0),
    "v100": (125.0, 15.7, 32.0),
    "rtx3090": (71.0, 35.6, 24.0),
    "rtx4090": (165.0, 82.6, 24.0),
    "t4": (65.0, 8.1, 16.0),
    "cpu": (1.25, 0.8, 16.0),  # a core of a recent server; measured rather than printed on a sheet
}

# Training images of the whole sets. A folder of one's own: as many as CIFAR has, for want of a better guess.
IMAGES = {
    "embedded": 10_000,
    "fashion_mnist": 60_000,
    "cifar10": 50_000,
    "cifar100": 50_000,
    "imagenet": 1_281_167,
    "flowers102": 2_040,
    "pets": 3_680,
    "synthetic": 1_024,
}


@dataclass(frozen=True)
class Cost:
    """Of one run. None is what nobody has measured yet."""

    steps: int
    passes: float  # forward-backward passes of a whole batch
    flops: float | None
    memory_gb: float | None
    utilisation: float
    layers: int
    half: bool  # whether the passes run in bf16 or fp16
    shards: int = 1  # parts of the batch that a pass takes one after the other: m-sharpness, micro-batches, LPF-SGD's
    ranks: int = 1  # that share a pass
    threads: int = 1  # of the processor, where it computes

    def hours(self, device: str) -> float | None:
        if self.flops is None:
            return None
        halved, full, _ = device_facts(device)
        at_once = self.threads if device == "cpu" else self.ranks
        computing = self.flops / at_once / ((halved if self.half else full) * 1e12 * self.utilisation)
        layer = CPU_LAYER_SECONDS if device == "cpu" else LAYER_SECONDS
        launching = self.passes * self.shards * self.layers * layer
        return max(computing, launching) / 3600


def found_device() -> str:
    """This machine's: its first GPU by name, a GPU of unknown name as an A100, or the processor."""
    if not has_gpus():
        return "cpu"
    name = (gpu_name() or "").lower().replace(" ", "")
    return next((known for known in DEVICES if known in name), "a100")


def device_facts(name: str) -> tuple[float, float, float]:
    if name not in DEVICES:
        raise UserError(f"device={name}: unknown device: {hint(name, DEVICES)}")
    return DEVICES[name]


def cost(config: Config) -> Cost:
    examples, batch = train_examples(config), config.loop.batch_size
    steps_an_epoch = max(1, examples // batch if config.loop.drop_last else -(-examples // batch))
    if config.budget.max_steps is not None:
        steps_an_epoch = min(steps_an_epoch, config.budget.max_steps)
    steps = steps_an_epoch * epochs(config)
    passes = steps * config.method.passes(batch, examples)
    if config.loop.probe_steps is not None:  # each probe takes the whole training set's gradient, and the batch's
        passes += steps // config.loop.probe_steps * (examples / batch + 1)
    model = model_cost(config)
    half = config.runtime.precision is not Precision.fp32
    flops = memory = None
    share = -(-batch // config.runtime.ranks)
    at_once = min(config.loop.micro_batch or batch, config.method.m or batch, share)
    at_once = -(-at_once // config.method.parts)
    if model is not None:
        flops = passes * batch * 6.0 * model.macs
        memory = SLACK * model.training_bytes(at_once, half, _bytes_a_parameter(config)) / 2**30
    transformers = (Architecture.timm, Architecture.transformer)
    busy = TRANSFORMER if config.model.architecture in transformers else CONVOLUTION
    shards, ranks = -(-share // at_once), config.runtime.ranks
    threads = config.runtime.threads or cores()
    layers = config.model.depth or 0
    if config.model.architecture is Architecture.transformer:
        layers *= 5  # two sublayers of the encoder and three of the decoder, each as long as a convolution's
    return Cost(steps, passes, flops, memory, busy, layers, half, shards, ranks, threads)


def model_cost(config: Config) -> ModelCost | None:
    """Of an example. A task of one's own may say it, by a function `cost` of the configuration."""
    if is_text(config):
        return translation.cost(config.model, translation.DICTIONARIES[_corpus(config)])
    if config.task is None:
        return lookup(config.model, config.dataset.classes, config.dataset.image_size)
    told = getattr(own.load("task", config.task), "cost", None)
    found: ModelCost | None = told(config) if told else None
    return found


def train_examples(config: Config) -> int:
    """An epoch's images, or tokens: what is held out is taken first, then the subset and the budget's.

    A task of one's own may say it, by a function `examples` of the configuration.
    """
    if config.task is not None and (told := getattr(own.load("task", config.task), "examples", None)):
        return int(told(config))
    if is_text(config):
        tokens, pairs = translation.TOKENS[_corpus(config)], translation.PAIRS[_corpus(config)]
        few = min(pairs, config.dataset.train_images or pairs, config.budget.train_images or pairs)
        return tokens * few // pairs
    images = IMAGES.get(config.dataset.name.value, 50_000)
    if config.dataset.evaluate_on is not Split.test:
        images -= round(images * config.dataset.validation)
    return min(images, config.dataset.train_images or images, config.budget.train_images or images)


def _corpus(config: Config) -> str:
    """The one whose size is known, or is guessed to be this one's."""
    name = config.dataset.name.value
    return name if name in translation.TOKENS else "iwslt14"


def _bytes_a_parameter(config: Config) -> int:
    """Weight and gradient; momentum or Adam's two moments; what the method holds."""
    states = 2 if config.base_optimizer.name in (Optimizer.adam, Optimizer.adamw) else 1
    return 4 * (2 + states + config.method.vectors())
