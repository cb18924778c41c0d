"""Images and labels for --data_name=tensors: drawn by Python's own generator, whose numbers no version changes."""
import array
import json
import pathlib
import random
import struct
import sys

BLOCKS = 8  # an image is this many coloured blocks on each side under noise, so that pooling leaves images apart


def _pixels(shape: list[int], scale: float) -> array.array:
    draw = random.Random(20)
    batch, height, width, channels = shape
    values = array.array("f")
    for _ in range(batch):
        blocks = [draw.uniform(-scale, scale) for _ in range(BLOCKS * BLOCKS * channels)]
        for row in range(height):
            for column in range(width):
                block = (row * BLOCKS // height * BLOCKS + column * BLOCKS // width) * channels
                values.extend((blocks[block + c] + draw.uniform(-scale, scale)) / 2 for c in range(channels))
    return values


def _labels(count: int, data_set: str) -> array.array:
    draw = random.Random(21)
    first, last = (1, 1000) if data_set == "imagenet" else (0, 9)
    return array.array("i", [draw.randint(first, last) for _ in range(count)])


def write(path: pathlib.Path, shape: list[int], scale: float, data_set: str) -> None:
    """A safetensors file of `images` (float32, +-scale) and `labels` (int32)."""
    tensors = {"images": ("F32", shape, _pixels(shape, scale)),
               "labels": ("I32", [shape[0]], _labels(shape[0], data_set))}
    header, end = {}, 0
    for name, (kind, sizes, values) in tensors.items():
        size = len(values) * values.itemsize
        header[name] = {"dtype": kind, "shape": sizes, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, _, values in tensors.values():
            if sys.byteorder == "big":
                values.byteswap()
            file.write(values.tobytes())
