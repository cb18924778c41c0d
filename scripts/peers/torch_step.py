"""Times training steps (or forward passes) of one network in PyTorch; prints one JSON object with their seconds.

A step is forward, cross-entropy, backward and the SGD update with weight decay, as in this program. PyTorch adds the
decay to the gradients without computing the loss term itself, which is a little less work than the others do.
"""
import argparse
import json
import time

import torch
from torch.nn import functional as F

import torch_nets


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, choices=sorted(torch_nets.PARAMETERS))
    parser.add_argument("--batch_size", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--learning_rate", type=float, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--forward_only", action="store_true")
    parser.add_argument("--variant", choices=("eager", "full", "compile"), default="eager",
                        help="eager: autocast where bf16 is asked for; full: bf16 parameters too; compile: "
                             "torch.compile over eager")
    return parser.parse_args()


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
    network = torch_nets.make(options.model).to(kind).to(memory_format=torch.channels_last)
    size = torch_nets.IMAGE_SIZE[options.model]
    # Truncated normal around 127, as the synthetic images of this program; labels are drawn once.
    images = torch.nn.init.trunc_normal_(torch.empty(options.batch_size, 3, size, size), 127, 60, 7, 247)
    images = images.to(kind).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(0, torch_nets.CLASSES - 1, (options.batch_size,))
    autocast = options.precision == "bf16" and options.variant != "full"
    network.train(not options.forward_only)
    run = torch.compile(network) if options.variant == "compile" else network

    def forward():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return run(images)

    optimizer = optimizer_of(network, options.learning_rate, fused=True)

    def train():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            logits = run(images)
        loss = F.cross_entropy(logits.float(), labels)
        loss.backward()
        optimizer.step()
        return loss

    return forward if options.forward_only else train


def main():
    options = arguments()
    torch.set_num_threads(options.threads)
    step = make_step(options)
    seconds, result = [], None
    for index in range(options.warmup + options.steps):
        start = time.perf_counter()
        result = step()
        if index >= options.warmup:
            seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": seconds, "loss": None if options.forward_only else result.item(),
                      "version": torch.__version__}))


if __name__ == "__main__":
    main()
