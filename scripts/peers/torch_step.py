"""Times training steps (or forward passes) of one network in PyTorch; prints one JSON object with their seconds.

A step is forward, cross-entropy, backward and the SGD update with weight decay, as in this program. PyTorch adds the
decay to the gradients without computing the loss term itself, which is a little less work than the others do.
On a GPU fp32 may use TF32 and cuDNN times its algorithms, as this program does with --tune; fp16 is autocast with a
loss scale. Steps are timed there between events on the device, with no wait in between.
"""
import argparse
import json
import time

import torch
from torch.nn import functional as F

import torch_nets

AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, choices=sorted(torch_nets.PARAMETERS))
    parser.add_argument("--batch_size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--threads", type=int, help="default: PyTorch's")
    parser.add_argument("--learning_rate", type=float, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16", "fp16"), default="fp32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--forward_only", action="store_true")
    parser.add_argument("--variant", choices=("eager", "full", "compile", "graph"), default="eager",
                        help="eager: autocast where 16 bits are asked for; full: bf16 parameters too; compile: "
                             "torch.compile over eager; graph: the whole step as a CUDA graph")
    options = parser.parse_args()
    if options.device == "cpu" and (options.variant == "graph" or options.precision == "fp16"):
        parser.error("CUDA graphs and fp16 are for --device=cuda")
    return options


def optimizer_of(network, rate, fused):
    """L2 for all but the parameters of batch norm, as in this program."""
    norms = {id(p) for m in network.modules() if isinstance(m, torch.nn.BatchNorm2d) for p in m.parameters()}
    trainable = [p for p in network.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trainable if id(p) not in norms], "weight_decay": 4e-5},
              {"params": [p for p in trainable if id(p) in norms]}]
    return torch.optim.SGD([g for g in groups if g["params"]], lr=rate, fused=fused)


def make_step(options):
    torch.manual_seed(1234)
    kind = torch.bfloat16 if options.variant == "full" else torch.float32
    network = torch_nets.make(options.model).to(options.device, kind).to(memory_format=torch.channels_last)
    size = torch_nets.IMAGE_SIZE[options.model]
    # Truncated normal around 127, as the synthetic images of this program; labels are drawn once.
    images = torch.empty(options.batch_size, 3, size, size, device=options.device)
    images = torch.nn.init.trunc_normal_(images, 127, 60, 7, 247)
    images = images.to(kind).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, torch_nets.CLASSES - 1, (options.batch_size,), device=options.device)
    low = AUTOCAST.get(options.precision) if options.variant != "full" else None
    network.train(not options.forward_only)
    run = torch.compile(network) if options.variant == "compile" else network

    def autocast():
        return torch.autocast(options.device, low or torch.bfloat16, enabled=low is not None)

    def forward():
        with torch.inference_mode(), autocast():
            return run(images)

    optimizer = optimizer_of(network, options.learning_rate, fused=True)
    scaler = torch.amp.GradScaler(options.device, enabled=options.precision == "fp16")

    def train():
        optimizer.zero_grad(set_to_none=True)
        with autocast():
            logits = run(images)
        loss = F.cross_entropy(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # the fused optimizer skips overflows on the device: no wait for it here
        scaler.update()
        return loss.detach()

    return forward if options.forward_only else train


def captured(step):
    """The step as a CUDA graph, after some on another stream, as capturing demands."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = step()

    def replay():
        graph.replay()
        return result

    return replay


def times_on_cpu(step, options):
    seconds, result = [], None
    for index in range(options.warmup + options.steps):
        start = time.perf_counter()
        result = step()
        if index >= options.warmup:
            seconds.append(time.perf_counter() - start)
    return seconds, result


def times_on_gpu(step, options):
    for _ in range(options.warmup):
        result = step()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(options.steps + 1)]
    marks[0].record()
    for mark in marks[1:]:
        result = step()
        mark.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) / 1000 for before, after in zip(marks, marks[1:])], result


def gpu_facts():
    return {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda,
            "cudnn": torch.backends.cudnn.version(), "peak_bytes": torch.cuda.max_memory_allocated()}


def main():
    options = arguments()
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = options.device == "cuda"
    if on_gpu:
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = True
        torch.backends.cuda.matmul.allow_tf32 = True
    step = make_step(options)
    if options.variant == "graph":
        step = captured(step)
    seconds, result = (times_on_gpu if on_gpu else times_on_cpu)(step, options)
    print(json.dumps({"seconds": seconds, "loss": None if options.forward_only else result.item(),
                      "version": torch.__version__, **(gpu_facts() if on_gpu else {})}))


if __name__ == "__main__":
    main()
