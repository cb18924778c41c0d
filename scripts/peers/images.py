"""Compares the input pipeline with those of TensorFlow, torchvision and OpenCV on photographs.

    images.py --build=build/cpu --python=venv/bin/python PHOTOGRAPHS...    folders or files, JPEG

Cuts the photographs to 500x375, lets make_records write them as shards, has TensorFlow read these back, compares pixels
(cnn_data_tests, suite SlowTensorFlowPixels), and measures images for each second of a processor in interleaved rounds:
decode, random crop, flip, resize and normalisation, by one thread each. This program and TensorFlow read the shards,
checksums included; the others have the encoded images in memory. The floor is libjpeg-turbo's decoding of the
whole image alone, by simplejpeg, which brings a library of its own. --python names a Python with tensorflow, and with
torch and torchvision, opencv-python-headless and simplejpeg as far as these are to be measured; --without leaves some out.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

METHODS = ("nearest", "bilinear", "bicubic", "area")
HEIGHT, WIDTH, SIDE = 375, 500, 224
IN_PEER = "--in-peer"


def load_tensorflow():
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", TF_NUM_INTRAOP_THREADS="1",
                      TF_NUM_INTEROP_THREADS="1")
    import tensorflow
    return tensorflow


def cut(folder, count, paths):
    """Writes photographs of 500x375 as FOLDER/train/cut/<n>.jpg, and some as FOLDER/val/cut/<n>.jpg."""
    tf = load_tensorflow()
    for part in ("train", "val"):
        (folder / part / "cut").mkdir(parents=True)
    files = [f for p in map(pathlib.Path, paths) for f in (sorted(p.rglob("*.jpg")) if p.is_dir() else [p])]
    number = 0
    for file in files:
        image = tf.io.decode_jpeg(file.read_bytes(), channels=3).numpy()
        shrink = max(1, min(image.shape[0] // HEIGHT, image.shape[1] // WIDTH) // 3)
        rows, columns = image.shape[0] // shrink, image.shape[1] // shrink
        image = image[:rows * shrink, :columns * shrink].reshape(rows, shrink, columns, shrink, 3).mean((1, 3))
        for top in range(0, rows - HEIGHT + 1, HEIGHT):
            for left in range(0, columns - WIDTH + 1, WIDTH):
                if number < count:
                    tile = image[top:top + HEIGHT, left:left + WIDTH].astype("uint8")
                    data = tf.io.encode_jpeg(tile, quality=90 + number % 8, chroma_downsampling=number % 5 != 0).numpy()
                    (folder / "train/cut" / f"{number:03}.jpg").write_bytes(data)
                    if number < 4:
                        (folder / "val/cut" / f"{number:03}.jpg").write_bytes(data)
                    number += 1
    return number


def write_pixels(folder, every):
    """Writes what TensorFlow makes of every n-th photograph: crops of known places, flipped or not, and evaluation."""
    tf = load_tensorflow()
    resize = tf.compat.v1.image.resize_images
    kinds = (tf.image.ResizeMethod.NEAREST_NEIGHBOR, tf.image.ResizeMethod.BILINEAR, tf.image.ResizeMethod.BICUBIC,
             tf.image.ResizeMethod.AREA)
    rows = []
    for number, file in enumerate(sorted((folder / "train/cut").glob("*.jpg"))[::every]):
        data = file.read_bytes()
        top, left, flip = 7 * number % 150, 11 * number % 200, number % 2
        height, width = 60 + 13 * number % (HEIGHT - top - 60), 60 + 17 * number % (WIDTH - left - 60)
        ratio = max(SIDE / HEIGHT, SIDE / WIDTH) * 1.145
        whole = [int(HEIGHT * ratio), int(WIDTH * ratio)]
        for name, kind in zip(METHODS, kinds):
            crop = tf.image.decode_and_crop_jpeg(data, [top, left, height, width], channels=3, dct_method="INTEGER_FAST")
            crop = tf.image.flip_left_right(crop) if flip else crop
            train = tf.cast(resize(crop, [SIDE, SIDE], kind, align_corners=False), tf.float32)
            image = tf.image.decode_jpeg(data, channels=3, dct_method="INTEGER_FAST")
            large = tf.cast(resize(image, whole, kind, align_corners=False), tf.float32)
            first, second = (whole[0] - SIDE) // 2, (whole[1] - SIDE) // 2
            pixels = f"{file.stem}.{name}"
            (folder / f"{pixels}.train").write_bytes(train.numpy().tobytes())
            (folder / f"{pixels}.eval").write_bytes(large.numpy()[first:first + SIDE, second:second + SIDE].tobytes())
            rows.append(f"{file} {name} {top} {left} {height} {width} {flip} {folder / pixels}")
    (folder / "pixels.txt").write_text("\n".join(rows) + "\n")


def read_shards(shards):
    """Labels and sizes of all examples, by TensorFlow."""
    tf = load_tensorflow()
    files = sorted(str(f) for f in shards.glob("train-*-of-*"))
    keys = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([1], tf.int64),
            "image/height": tf.io.FixedLenFeature([1], tf.int64),
            "image/object/bbox/xmin": tf.io.VarLenFeature(tf.float32)}
    count = 0
    for record in tf.data.TFRecordDataset(files):
        example = tf.io.parse_single_example(record, keys)
        shape = tf.io.extract_jpeg_shape(example["image/encoded"]).numpy()
        assert list(shape) == [HEIGHT, WIDTH, 3] and int(example["image/height"][0]) == HEIGHT, shape
        assert int(example["image/class/label"][0]) == 1
        count += 1
    return count


def tensorflow_speed(folder, repeats):
    """As the original's input does it, from the same shards, in a tf.data pipeline of one thread."""
    tf = load_tensorflow()
    edges = [f"image/object/bbox/{edge}" for edge in ("ymin", "xmin", "ymax", "xmax")]
    keys = {"image/encoded": tf.io.FixedLenFeature([], tf.string, ""),
            "image/class/label": tf.io.FixedLenFeature([1], tf.int64, -1),
            "image/class/text": tf.io.FixedLenFeature([], tf.string, ""),
            **{edge: tf.io.VarLenFeature(tf.float32) for edge in edges}}

    def image_of(record):
        example = tf.io.parse_single_example(record, keys)
        data = example["image/encoded"]
        box = tf.transpose(tf.expand_dims(tf.stack([example[edge].values for edge in edges]), 0), [0, 2, 1])
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(data), bounding_boxes=box, min_object_covered=0.1, aspect_ratio_range=[0.75, 1.33],
            area_range=[0.05, 1.0], max_attempts=100, use_image_if_no_bounding_boxes=True)
        window = tf.concat([begin[:2], size[:2]], 0)
        image = tf.image.decode_and_crop_jpeg(data, window, channels=3, dct_method="INTEGER_FAST")
        image = tf.image.random_flip_left_right(image)
        image = tf.compat.v1.image.resize_images(image, [SIDE, SIDE], tf.image.ResizeMethod.BILINEAR, align_corners=False)
        return tf.cast(image, tf.float32) * (1 / 127.5) - 1, tf.cast(example["image/class/label"], tf.int32)

    shards = sorted(str(file) for file in (folder / "shards").glob("train-*-of-*"))
    records = tf.data.Dataset.from_tensor_slices(shards).interleave(tf.data.TFRecordDataset, cycle_length=10)
    data = records.shuffle(10000).repeat(repeats + 1).map(image_of).batch(50)
    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    return counted(iter(data.with_options(options)), len(encoded(folder)), 50, repeats)


def counted(batches, warmup, batch, repeats):
    done = 0
    while done < warmup:
        next(batches)
        done += batch
    start = os.times()
    done = 0
    while done < warmup * repeats:
        next(batches)
        done += batch
    end = os.times()
    return done / (end.user + end.system - start.user - start.system)


def encoded(folder):
    return [f.read_bytes() for f in sorted((folder / "train/cut").glob("*.jpg"))]


def random_crop(random):
    """Top, left, height and width of a crop whose sizes and shapes are drawn as the original draws them."""
    aspect, area = random.uniform(0.75, 1.33), random.uniform(0.1, 1.0) * HEIGHT * WIDTH
    height = min(HEIGHT, int((area / aspect) ** 0.5))
    width = min(WIDTH, int(height * aspect))
    return random.integers(HEIGHT - height + 1), random.integers(WIDTH - width + 1), height, width


def torchvision_speed(folder, repeats):
    """With its own decoder, which is libjpeg-turbo without a detour through Pillow, and transforms of tensors."""
    import numpy
    import torch
    from torchvision import io
    from torchvision.transforms.v2 import functional
    torch.set_num_threads(1)
    random = numpy.random.default_rng(1)
    files = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in encoded(folder)]

    def batches():
        for number in range(len(files) * (repeats + 1)):
            image = io.decode_jpeg(files[number % len(files)], mode=io.ImageReadMode.RGB)
            crop = [int(edge) for edge in random_crop(random)]
            image = functional.resized_crop(image, *crop, [SIDE, SIDE], antialias=False)
            image = functional.horizontal_flip(image) if random.integers(2) else image
            yield image.float() * (1 / 127.5) - 1

    return counted(batches(), len(files), 1, repeats)


def floor_speed(folder, repeats):
    import simplejpeg
    files = encoded(folder)

    def batches():
        for number in range(len(files) * (repeats + 1)):
            yield simplejpeg.decode_jpeg(files[number % len(files)], "RGB", fastdct=True)

    return counted(batches(), len(files), 1, repeats)


def opencv_speed(folder, repeats, only_decode):
    import cv2
    import numpy
    cv2.setNumThreads(1)
    random = numpy.random.default_rng(1)
    files = [numpy.frombuffer(data, numpy.uint8) for data in encoded(folder)]

    def batches():
        for number in range(len(files) * (repeats + 1)):
            image = cv2.imdecode(files[number % len(files)], cv2.IMREAD_COLOR)
            if not only_decode:
                top, left, height, width = random_crop(random)
                image = cv2.resize(image[top:top + height, left:left + width], (SIDE, SIDE), interpolation=cv2.INTER_LINEAR)
                image = cv2.flip(image, 1) if random.integers(2) else image
                image = cv2.cvtColor(image, cv2.COLOR_BGR2RGB).astype(numpy.float32) * (1 / 127.5) - 1
            yield image

    return counted(batches(), len(files), 1, repeats)


SPEEDS = {"tensorflow": tensorflow_speed,
          "torchvision": torchvision_speed,
          "opencv": lambda folder, repeats: opencv_speed(folder, repeats, False),
          "opencv decode alone": lambda folder, repeats: opencv_speed(folder, repeats, True),
          "floor": floor_speed}
PEER_WORK = {"cut": lambda a: cut(pathlib.Path(a[0]), int(a[1]), a[2:]),
             "pixels": lambda a: write_pixels(pathlib.Path(a[0]), int(a[1])),
             "read": lambda a: read_shards(pathlib.Path(a[0])),
             "speed": lambda a: SPEEDS[a[0]](pathlib.Path(a[1]), int(a[2]))}


def by_peer(python, *words):
    result = subprocess.run([python, __file__, IN_PEER, *map(str, words)], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"images.py: {words[0]}: {result.stderr.strip()[-2000:]}")
    return json.loads(result.stdout.splitlines()[-1])


def our_speed(build, shards, repeats, count, folder):
    result = folder / "result.json"
    subprocess.run([build / "cnn_benchmarks", "--device=cpu", "--data_name=imagenet", f"--data_dir={shards}",
                    "--model=resnet50", "--input_only", "--datasets_num_private_threads=1", "--batch_size=50",
                    "--num_warmup_batches=4", f"--num_batches={count * repeats // 50}", f"--result_json={result}"],
                   check=True, capture_output=True)
    return json.loads(result.read_text())["input"]["images_per_cpu_second"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photographs", nargs="+")
    parser.add_argument("--build", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--python", required=True)
    parser.add_argument("--count", type=int, default=200, help="photographs (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="times that a round reads all of them")
    parser.add_argument("--without", action="append", default=[], choices=list(SPEEDS),
                        help="a comparison to leave out; may be given several times")
    return parser.parse_args()


def main():
    if sys.argv[1:2] == [IN_PEER]:
        print(json.dumps(PEER_WORK[sys.argv[2]](sys.argv[3:])))
        return
    options = arguments()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        count = by_peer(options.python, "cut", folder, options.count, *options.photographs)
        shards = folder / "shards"
        subprocess.run([options.build / "make_records", folder, shards, "--train_shards=3"], check=True)
        print(f"{by_peer(options.python, 'read', shards)} of {count} examples read by TensorFlow")
        by_peer(options.python, "pixels", folder, 1)
        subprocess.run([options.build / "cnn_data_tests", "--gtest_brief=1", "--gtest_filter=SlowTensorFlowPixels.*"],
                       check=True, env={**os.environ, "CNN_TENSORFLOW_PIXELS": str(folder / "pixels.txt")})
        peers = [name for name in SPEEDS if name not in options.without]
        speeds = {name: [] for name in ["cnn_benchmarks", *peers]}
        for _ in range(options.rounds):
            speeds["cnn_benchmarks"].append(our_speed(options.build, shards, options.repeats, count, folder))
            for peer in peers:
                speeds[peer].append(by_peer(options.python, "speed", peer, folder, options.repeats))
        ours = statistics.median(speeds["cnn_benchmarks"])
        for name, values in speeds.items():
            middle = statistics.median(values)
            print(f"{name:20} {middle:8.1f} images for each second of a processor (rounds {min(values):.1f} to "
                  f"{max(values):.1f}); cnn_benchmarks does {ours / middle:.2f} times that")


if __name__ == "__main__":
    main()
