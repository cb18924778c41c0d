#!/usr/bin/env python3
"""Writes the inputs of a golden run (tests/golden/*.json) for the program to read.

make_golden_inputs.py tests/golden/resnet50.json FOLDER writes FOLDER/x.safetensors (images and
labels) and FOLDER/model.ckpt-0.safetensors (the starting weights), and prints the flags of the run.
Its result file is then compared by check_golden.py. Needs numpy. The formula is the one of
tests/support/formula.h.
"""

import argparse
import json
import pathlib
import struct

import numpy as np

MASK = (1 << 64) - 1
CHUNK = 1 << 22  # elements at a time: the largest variable has 10^8


def fnv1a(text):
    result = 0xCBF29CE484222325
    for byte in text.encode():
        result = (result ^ byte) * 0x100000001B3 & MASK
    return result


def bits(name, index, seed):
    """64 bits for each element of `index` (uint64): splitmix64's finaliser of a counter."""
    stream = np.uint64((fnv1a(name) + seed * 0xD1B54A32D192ED03) & MASK)
    z = stream + (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def unit(name, index, seed):
    """In [-1, 1), exact in float32."""
    top = (bits(name, index, seed) >> np.uint64(40)).astype(np.float64)
    return (top / 2.0**23 - 1).astype(np.float32)


def line(name, shape):
    """Offset and slope: value = offset + slope * u."""
    last = name.rsplit("/", 1)[-1]
    if last == "gamma":
        return 1, 0.125
    if last == "moving_variance":
        return 1, 0.25
    if last in ("beta", "moving_mean", "biases", "bias"):
        return 0, 0.0625
    return 0, np.sqrt(6 / np.prod(shape[:-1], dtype=np.float64))


def variable(name, shape, seed):
    values = np.empty(int(np.prod(shape)), np.float32)
    offset, slope = (np.float32(x) for x in line(name, shape))
    for start in range(0, values.size, CHUNK):
        index = np.arange(start, min(start + CHUNK, values.size), dtype=np.uint64)
        values[start : start + index.size] = offset + slope * unit(name, index, seed)
    return values.reshape(shape)


def images(batch, size, seed):
    block = size // 8
    blocks = -(-size // block)
    n, h, w, c = np.ogrid[:batch, :size, :size, :3]
    coarse = ((n * blocks + h // block) * blocks + w // block) * 3 + c
    fine = ((n * size + h) * size + w) * 3 + c
    both = unit("images/coarse", coarse.astype(np.uint64), seed)
    both = both + unit("images", fine.astype(np.uint64), seed)
    return np.float32(0.5) * both


def labels(golden):
    index = np.arange(golden["batch_size"], dtype=np.uint64)
    drawn = bits("labels", index, golden["seed"]) >> np.uint64(33)
    drawn = drawn % np.uint64(golden["classes"] - 1)
    first = 1 if golden["data_set"] == "imagenet" else 0
    return (drawn.astype(np.int32) + first).astype(np.int32)


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, shape, function that makes the array)."""
    header, end = {}, 0
    for name, (dtype, shape, _) in tensors.items():
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        code = {"float32": "F32", "int32": "I32", "int64": "I64"}[np.dtype(dtype).name]
        header[name] = {"dtype": code, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for dtype, shape, make in tensors.values():
            array = make()
            assert array.dtype == dtype and array.shape == tuple(shape)
            array.tofile(file)


def flags(golden, folder):
    evaluation = golden["phase"] == "eval"
    steps = len(golden["total_loss"])
    options = {
        "device": "cpu",
        "model": golden["model"],
        "data_name": "tensors",
        "data_dir": folder / "x.safetensors",
        "tensors_as": golden["data_set"],
        "train_dir": folder,
        "batch_size": golden["batch_size"],
        "num_batches": steps,
        "num_warmup_batches": 0,
        "display_every": 1,
        "optimizer": golden["optimizer"],
        "init_learning_rate": golden["learning_rate"],
        "weight_decay": golden["weight_decay"],
        "result_json": folder / "result.json",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    return words + (["--eval"] if evaluation else ["--nodropout"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    golden = json.loads(arguments.golden.read_text())
    seed, batch, size = golden["seed"], golden["batch_size"], golden["image_size"]
    drawn = labels(golden)
    if drawn.tolist() != golden["labels"]:
        raise SystemExit(f"{arguments.golden}: the formula gives other labels than the file lists")

    arguments.folder.mkdir(parents=True, exist_ok=True)
    write_safetensors(
        arguments.folder / "x.safetensors",
        {
            "images": (np.float32, (batch, size, size, 3), lambda: images(batch, size, seed)),
            "labels": (np.int32, (batch,), lambda: drawn),
        },
    )
    weights = {
        name: (np.float32, shape, lambda name=name, shape=shape: variable(name, shape, seed))
        for name, shape in golden["variables"].items()
    }
    weights["global_step"] = (np.int64, (), lambda: np.array(0, np.int64))
    write_safetensors(arguments.folder / "model.ckpt-0.safetensors", weights)
    print(" ".join(flags(golden, arguments.folder)))


if __name__ == "__main__":
    main()
