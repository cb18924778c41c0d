"""Trains a small network on photographs that make_records has written as shards, and evaluates it.

    venv/bin/python scripts/peers/photographs.py --build=build/cpu PHOTOGRAPHS...    folders or files, JPEG

Cuts each photograph into pieces of 500x375, which are one class; every sixth piece is left for the evaluation. The loss
of the last epoch must be less than half of the first one's, and the evaluation must be right three times as often as
guessing would be; else the exit code is 1. The Python needs pillow.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from PIL import Image

HEIGHT, WIDTH = 375, 500
COLUMNS, ROWS = 6, 4  # pieces of a photograph, which overlap
LARGEST = (1600, 1200)


def photographs_in(paths, count):
    """The first photographs that are large enough, decoded at about the size of which pieces are cut."""
    for file in (f for p in map(pathlib.Path, paths) for f in (sorted(p.rglob("*.jpg")) if p.is_dir() else [p])):
        if count == 0 or file.is_symlink():
            continue
        image = Image.open(file)
        if image.width < 2 * WIDTH or image.height < 2 * HEIGHT:
            continue
        image = image.convert("RGB")
        image.thumbnail(LARGEST)
        if image.width >= 2 * WIDTH and image.height >= 2 * HEIGHT:
            count -= 1
            yield file.stem, image


def write_pieces(folder, paths, count):
    """Writes FOLDER/train/<photograph>/<n>.jpg and FOLDER/val/...; returns how many photographs there were."""
    names = []
    for name, image in photographs_in(paths, count):
        names.append(f"{len(names):02}-{name}")
        for piece in range(COLUMNS * ROWS):
            left = piece % COLUMNS * (image.width - WIDTH) // (COLUMNS - 1)
            top = piece // COLUMNS * (image.height - HEIGHT) // (ROWS - 1)
            into = folder / ("val" if piece % 6 == 3 else "train") / names[-1]
            into.mkdir(parents=True, exist_ok=True)
            image.crop((left, top, left + WIDTH, top + HEIGHT)).save(into / f"{piece:02}.jpg", quality=90)
    return len(names)


def run(build, *flags):
    result = subprocess.run([build / "cnn_benchmarks", "--device=cpu", "--data_name=imagenet", *flags],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"photographs.py: {' '.join(map(str, flags))}: {result.stderr.strip()[-2000:]}")
    return result.stdout


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="+")
    parser.add_argument("--build", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--count", type=int, default=8, help="photographs (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch_size", type=int, default=16)
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        classes = write_pieces(folder / "pieces", options.photographs, options.count)
        if classes < 2:
            sys.exit(f"photographs.py: {' '.join(options.photographs)}: wants two photographs or more of at least "
                     f"{2 * WIDTH}x{2 * HEIGHT}, has {classes}")
        subprocess.run([options.build / "make_records", folder / "pieces", folder / "shards", "--train_shards=4",
                        "--validation_shards=1"], check=True)
        images = len(list((folder / "pieces/train").glob("*/*.jpg")))
        common = [f"--data_dir={folder / 'shards'}", "--model=resnet50", "--image_size=64",
                  f"--train_dir={folder / 'run'}"]
        output = run(options.build, *common, f"--batch_size={options.batch_size}", f"--num_epochs={options.epochs}",
                     "--num_warmup_batches=0", "--display_every=1", "--optimizer=momentum", "--init_learning_rate=0.02",
                     "--tf_random_seed=1")
        losses = [float(loss) for loss in re.findall(r"^\d+\timages/sec: .*\)\t(\S+)", output, re.MULTILINE)]
        steps = images // options.batch_size
        first, last = (sum(part) / steps for part in (losses[:steps], losses[-steps:]))
        batches = len(list((folder / "pieces/val").glob("*/*.jpg"))) // 10
        evaluation = run(options.build, *common, "--eval", "--batch_size=10", f"--num_batches={batches}")
        accuracy = float(re.search(r"Accuracy @ 1 = (\S+)", evaluation)[1])
        print(f"{classes} photographs, {images} pieces for training and {10 * batches} for evaluation: loss {first:.3f} in the "
              f"first epoch, {last:.3f} in the last of {options.epochs}; accuracy {accuracy:.3f}, by guessing "
              f"{1 / classes:.3f}")
        if last > first / 2 or accuracy < min(1, 3 / classes):
            sys.exit("photographs.py: it has not learned")


if __name__ == "__main__":
    main()
