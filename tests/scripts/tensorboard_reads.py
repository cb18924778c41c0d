"""Reads event files by TensorBoard's EventAccumulator and checks their scalars, histograms and images.

    tensorboard_reads.py TRAIN_DIR EVAL_DIR
"""
import io
import struct
import sys

from tensorboard.backend.event_processing import event_accumulator


def accumulate(folder):
    everything = {kind: 0 for kind in (event_accumulator.SCALARS, event_accumulator.HISTOGRAMS, event_accumulator.IMAGES)}
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance=everything)
    accumulator.Reload()
    return accumulator


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found}, not {wanted}")


def check_training(folder):
    events = accumulate(folder)
    tags = events.Tags()
    scalars = ["arena_peak_bytes", "images_per_sec", "input_wait_seconds", "learning_rate", "process_peak_bytes",
               "top_1_accuracy", "top_5_accuracy", "total_loss"]
    expect("scalars", sorted(tags["scalars"]), scalars)
    # The last run began at step 1 again, so it hides what earlier runs wrote for step 1 and later steps.
    for tag in scalars:
        expect(f"steps of {tag}", [event.step for event in events.Scalars(tag)], [1, 2, 3])
    histograms = tags["histograms"]
    variables = [tag for tag in histograms if tag.startswith("v/cg/") and not tag.endswith("/gradients")]
    expect("histograms", sorted(histograms), sorted([*variables, *(v + "/gradients" for v in variables), "log_gradients"]))
    expect("variables", len(variables), 8)
    for tag in histograms:
        for event in events.Histograms(tag):
            value = event.histogram_value
            expect(f"count of {tag}", sum(value.bucket), value.num)
            filled = [i for i, count in enumerate(value.bucket) if count > 0]
            first, last = filled[0], filled[-1]
            if not value.min <= value.bucket_limit[first] or not value.max <= value.bucket_limit[last] or \
                    (first > 0 and value.min < value.bucket_limit[first - 1]):
                sys.exit(f"{tag}: {value.min} to {value.max} lie outside of the buckets that have them")
    expect("images", sorted(tags["images"]), ["images/image/0", "images/image/1", "images/image/2"])
    image = events.Images("images/image/0")[0].encoded_image_string
    expect("an image", (image[:8], struct.unpack(">II", image[16:24])), (b"\x89PNG\r\n\x1a\n", (28, 28)))
    try:
        from PIL import Image
        Image.open(io.BytesIO(image)).load()
    except ImportError:
        pass
    graph = events.Graph()
    names = {node.name for node in graph.node}
    expect("nodes of one name", len(names), len(graph.node))
    for node in graph.node:
        for source in node.input:
            if source.split(":")[0] not in names:
                sys.exit(f"{node.name} reads {source}, which is no node")
    operations = {node.op for node in graph.node}
    if not {"conv", "update", "VariableV2"} <= operations:
        sys.exit(f"the graph lacks operations: {sorted(operations)}")


def check_evaluation(folder):
    events = accumulate(folder)
    for tag in ("eval/Accuracy@1", "eval/Accuracy@5"):
        expect(f"steps of {tag}", [event.step for event in events.Scalars(tag)], [3])


check_training(sys.argv[1])
check_evaluation(sys.argv[2])
print("TensorBoard reads the event files")
