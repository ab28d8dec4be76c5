"""The two decoders: the same pixels to the bit, and the same opinion of what is readable."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, features
from torchvision.transforms import v2

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id
from sam_repro.data import decoding
from sam_repro.data.declared import Decoder
from sam_repro.data.decoding import decode, planes, together
from sam_repro.data.on_device import Normalise
from sam_repro.data.pictures import FilePictures, UnreadableError
from sam_repro.data.preprocess import ResizedCrop, mirrored_or_not
from sam_repro.errors import UserError


def picture(width: int, height: int, mode: str = "RGB") -> Image.Image:
    coarse = np.random.default_rng(width).integers(0, 256, (height // 4 + 1, width // 4 + 1, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def jpeg(width: int = 83, height: int = 61, mode: str = "RGB", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture(width, height, mode).save(buffer, "JPEG", **options)
    return buffer.getvalue()


KINDS = {
    "4:2:0": jpeg(),
    "4:2:2": jpeg(subsampling=1),
    "4:4:4": jpeg(subsampling=0, quality=95),
    "progressive": jpeg(progressive=True),
    "optimised": jpeg(optimize=True, quality=30),
    "restarts": jpeg(restart_marker_rows=1),
    "kept as RGB": jpeg(keep_rgb=True),
    "grey": jpeg(mode="L"),
    "CMYK": jpeg(mode="CMYK"),
    "one pixel": jpeg(1, 1),
    "a line": jpeg(300, 1),
    "large": jpeg(500, 375),
    "EXIF": jpeg(exif=b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"),  # to be turned
    "followed by more": jpeg() + b"\0trailing",
}


@pytest.mark.parametrize("kind", KINDS)
def test_both_decoders_give_the_same_pixels(kind: str) -> None:
    """The mean absolute difference is 0 where Pillow has libjpeg-turbo, as its own builds have."""
    assert features.check_feature("libjpeg_turbo"), (
        "this Pillow was built with another library: set dataset.decoder=pil"
    )
    fast, pil = (decode(KINDS[kind], decoder) for decoder in Decoder)
    assert fast.dtype == np.uint8
    assert np.abs(fast.astype(int) - pil.astype(int)).max() == 0
    assert fast.shape == (*Image.open(io.BytesIO(KINDS[kind])).size[::-1], 3)  # as it lies in the file


def test_simplejpeg_decodes_what_is_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    def no(file: object) -> None:
        raise AssertionError("Pillow was asked")

    monkeypatch.setattr(decoding, "_by_pil", no)
    for kind, content in KINDS.items():
        if kind != "CMYK":
            decode(content, Decoder.fast)


def test_other_formats_go_by_content_not_by_name(tmp_path: Path) -> None:
    for suffix in ("PNG", "BMP", "GIF", "WEBP"):
        buffer = io.BytesIO()
        picture(40, 30, "P" if suffix == "GIF" else "RGBA").save(buffer, suffix)
        (tmp_path / "lies.jpg").write_bytes(buffer.getvalue())
        fast, pil = (FilePictures([tmp_path / "lies.jpg"], decoder).read(0) for decoder in Decoder)
        assert fast.shape == (3, 30, 40)
        assert torch.equal(fast, pil)


def damaged() -> dict[str, bytes]:
    whole = KINDS["large"]
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x5A
    giant = bytearray(whole)
    frame = giant.index(b"\xff\xc0")
    giant[frame + 5 : frame + 9] = b"\xff\xff\xff\xff"  # 65535 x 65535 pixels
    return {
        "empty": b"", "no image": b"not an image", "JPEG in name": b"\xff\xd8\xff" + b"x" * 500,
        "cut in its header": whole[:100], "cut": whole[: len(whole) // 2], "without its end": whole[:-2],
        "flipped": bytes(flipped), "a giant": bytes(giant), "a postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n",
    }  # fmt: skip


@pytest.mark.parametrize("kind", damaged())
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_both_decoders_call_the_same_files_unreadable(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(damaged()[kind])
    outcomes = []
    for decoder in Decoder:
        try:
            outcomes.append(FilePictures([path], decoder).read(0).tolist())
        except UnreadableError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    readable = kind == "flipped"
    assert isinstance(outcomes[0], list) == readable


def test_the_piece_is_torchvisions_to_the_bit() -> None:
    pixels = planes(decode(KINDS["large"], Decoder.fast))
    theirs = v2.Compose([v2.RandomResizedCrop((64, 64), scale=(0.08, 1.0)), v2.RandomHorizontalFlip()])
    crop = ResizedCrop(64, 0.08)
    for seed in range(20):
        torch.manual_seed(seed)
        expected = theirs(pixels)
        torch.manual_seed(seed)
        assert torch.equal(mirrored_or_not(crop(pixels)), expected)


def test_the_order_of_colours_changes_no_number() -> None:
    images = [torch.randint(0, 256, (3, 6, 5), dtype=torch.uint8) for _ in range(4)]
    last = together(images)
    assert torch.equal(last, torch.stack(images))
    assert last.is_contiguous(memory_format=torch.channels_last)
    normalise = Normalise([0.5, 0.4, 0.3], [0.2, 0.25, 0.3], torch.device("cpu"))
    assert torch.equal(normalise(last), normalise(torch.stack(images)))


def test_the_decoder_is_part_of_the_id_where_files_are_decoded(tmp_path: Path) -> None:
    imagenet = ["dataset=imagenet", "augment=none"]
    default = run_id(compose(imagenet))
    assert run_id(compose([*imagenet, "dataset.decoder=fast"])) == default
    assert run_id(compose([*imagenet, "dataset.decoder=pil"])) != default
    with pytest.raises(UserError, match=r"dataset\.decoder is not read"):
        compose(["dataset=cifar10", "dataset.decoder=pil"])
