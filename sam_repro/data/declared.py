"""Which data sets there are and what a configuration says of one. Imports no torch: the schema shares it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(Enum):
    embedded = "embedded"  # balanced subset of Fashion-MNIST inside the package
    fashion_mnist = "fashion_mnist"
    cifar10 = "cifar10"
    cifar100 = "cifar100"
    folder = "folder"  # root/train/<class>/*.png, and root/test/<class>/*.png or root/val/<class>/*.png
    imagenet = "imagenet"  # root/train/<wnid>/*.JPEG and root/val/<wnid>/*.JPEG
    flowers102 = "flowers102"  # Oxford Flowers-102 and Oxford-IIIT Pets, in torchvision's layout
    pets = "pets"
    synthetic = "synthetic"  # random pixels and balanced labels, any size and number of classes: for trials and timing
    own = "own"  # the user's, by its `reader`
    grammar = "grammar"  # pairs of sentences of a small grammar, inside the package
    iwslt14 = "iwslt14"  # root/iwslt14/train|valid|test.de|.en, as `sam-repro fetch iwslt14` makes it
    parallel = "parallel"  # root/train|valid|test.<source>|.<target>, lines that belong together, plain or gzip


def pack_name(pixels: int) -> str:
    """The file that holds ImageNet's pictures with a shorter side of so many pixels."""
    return f"imagenet-{pixels}.pack"


TEXT = (Source.grammar, Source.iwslt14, Source.parallel)  # to be translated; all others are images


class Split(Enum):
    test = "test"
    validation = "validation"  # held-out part of the training set, for choosing hyperparameters
    both = "both"  # the test set, and beside it the held-out part, so that an epoch can be picked on that


class Fit(Enum):
    crop = "crop"  # the shorter side to image_size / crop_share, then the centre
    squash = "squash"  # both sides to image_size, whatever the proportions


class Decoder(Enum):
    fast = "fast"  # JPEGs by simplejpeg, with the pixels that Pillow gives; all else by Pillow
    pil = "pil"  # everything by Pillow


OF_FILES = (Source.folder, Source.imagenet, Source.flowers102, Source.pets, Source.own)  # images of any size, as files
# Of the sets that are not of verified files: any of these folders under a root.
FOLDERS = {
    Source.imagenet: ("imagenet/train", "train"),
    Source.flowers102: ("flowers-102",),
    Source.pets: ("oxford-iiit-pet",),
    Source.folder: ("",),
    Source.iwslt14: ("iwslt14",),
    Source.parallel: ("",),
}


@dataclass
class LabelNoise:
    rate: float = 0.0  # share of training labels redrawn
    include_true: bool = False  # whether a redrawn label may be the true one again
    seed: int = 0  # of its own generator, so that all seeds of a run share one corruption


@dataclass
class TextConfig:
    """How parallel text becomes numbers."""

    merges: int = 10_000  # of byte-pair encoding, learnt on the training pairs alone
    joint: bool = True  # one list of merges for both languages; each has a dictionary of its own either way
    moses: bool = True  # tokenise as Moses does; false: the text's words are the tokens
    lower: bool = True  # no capitals, in training and in the references
    longest: int = 175  # training pairs with more tokens on a side are left out
    ratio: float = 1.5  # and those of which one side has more than so many times the other's tokens


@dataclass
class DatasetConfig:
    name: Source = Source.embedded
    root: str = "data"  # where the files are; not part of a run's identity
    classes: int = 10  # 0: as many as there are class folders, with dataset=folder
    image_size: int = 32
    mean: list[float] = field(default_factory=lambda: [0.5, 0.5, 0.5])
    std: list[float] = field(default_factory=lambda: [0.5, 0.5, 0.5])
    train_images: int | None = None  # a fixed, class-balanced subset; of text, the first pairs; null: all
    test_images: int | None = None
    stream: bool = False  # read and decode in worker processes while training, instead of once into memory
    fit: Fit = Fit.crop  # how an image of another size becomes image_size pixels
    crop_share: float = 1.0  # ImageNet's usual 224 of 256 pixels: 0.875
    pack: int | None = None  # imagenet: from root/imagenet-<pack>.pack, as `sam-repro fetch imagenet --pack` makes it
    decoder: Decoder = Decoder.fast  # of image files
    skip_unreadable: int = 0  # so many broken image files are named and left out, by each rank; one more ends the run
    workers: int | None = None  # that decode, a rank; null: its share of the cores. Not part of a run's identity
    evaluate_on: Split = Split.test
    validation: float = 0.1  # share of the training set held out when evaluate_on=validation or both
    label_noise: LabelNoise = field(default_factory=LabelNoise)
    reader: str | None = None  # own: package.module:attribute, called with `root` and `image_size`
    source: str | None = None  # parallel: the language that is translated, by the end of its files' names: de
    target: str | None = None  # parallel: the language that it is translated into
    text: TextConfig = field(default_factory=TextConfig)

    @property
    def languages(self) -> tuple[str, str]:
        """(source, target) of parallel text."""
        return (self.source or "", self.target or "") if self.name is Source.parallel else ("de", "en")
