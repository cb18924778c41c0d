"""What is run for each model of the catalog: small enough for seconds, long enough that a wrong gradient shows.

Images. Networks without batch normalisation take images around 0 from a file, scaled so that the logits are ordinary
numbers: on synthetic bytes (127 +- 60) their losses start in the hundreds or their units die. The others take
synthetic bytes with fixed labels, as benchmarks do.

Rates. The loss is to fall by a good part, but smoothly: with ten times the rate most networks leave the curve as soon
as one bit differs. Deep networks with batch normalisation have gradients that grow layer by layer towards the input
(by some 1.2 for each, more where a batch has few elements), so that no one rate suits them:
  fine_rate  tiny: the first layers learn, and float32 runs stay together whatever their order of summation. In 16 bits
             these huge gradients point elsewhere: a bf16 run learns half as much, correctly rounded as it is.
  rate       large: the weights of the first layers grow until they hardly turn, the last layers learn, and runs of
             every precision agree on how far the loss falls in the end, by orders of magnitude; two float32 runs with
             another order of summation are as far apart as float32 from bf16.
"""
import dataclasses
from typing import Iterator, Optional

STEPS = 20


@dataclasses.dataclass(frozen=True)
class Case:
    name: str  # of the curve's file; the model's own where that is unique
    data_set: str
    image_size: int
    rate: float
    batch: int = 4
    scale: Optional[float] = None  # of images from a file; None: synthetic images
    model: str = ""  # where it is not the name
    fine_rate: Optional[float] = None  # of a second curve, for fp32_strict

    @property
    def model_name(self) -> str:
        return self.model or self.name

    @property
    def shape(self) -> list[int]:
        return [self.batch, self.image_size, self.image_size, 1 if self.data_set == "mnist" else 3]

    def flags(self, rate: float) -> list[str]:
        source = ([f"--data_name={self.data_set}", "--synthetic_labels=fixed"] if self.scale is None
                  else ["--data_name=tensors", f"--tensors_as={self.data_set}"])
        return [f"--model={self.model_name}", *source, f"--image_size={self.image_size}",
                f"--batch_size={self.batch}", f"--num_batches={STEPS}", "--num_warmup_batches=0",
                "--optimizer=momentum", f"--init_learning_rate={rate:g}", "--nodropout", "--tf_random_seed=1234"]


def imagenet() -> Iterator[Case]:
    yield Case("trivial", "imagenet", 32, 0.01, scale=1)
    yield Case("lenet", "imagenet", 28, 0.0005, scale=1)
    yield Case("alexnet", "imagenet", 67, 0.00001, scale=10)
    yield Case("overfeat", "imagenet", 71, 0.00003, scale=10)
    yield Case("vgg11", "imagenet", 32, 0.000015, scale=30)
    yield Case("vgg16", "imagenet", 32, 0.00005, scale=100)
    yield Case("vgg19", "imagenet", 32, 0.0002, scale=100)
    yield Case("googlenet", "imagenet", 64, 0.0005, scale=30)
    yield Case("inception3", "imagenet", 107, 1e-3, fine_rate=3e-8)
    yield Case("inception4", "imagenet", 107, 1e-3, fine_rate=1e-10)
    yield Case("resnet50", "imagenet", 64, 1.5e-4, fine_rate=3e-8)
    yield Case("resnet50_v1.5", "imagenet", 64, 1.5e-4, fine_rate=3e-8)
    yield Case("resnet101", "imagenet", 64, 3e-4, fine_rate=1e-9)
    yield Case("resnet152", "imagenet", 64, 3e-4, fine_rate=5e-11)
    yield Case("resnet50_v2", "imagenet", 64, 3e-4, fine_rate=3e-7)
    yield Case("resnet101_v2", "imagenet", 64, 1e-3, fine_rate=3e-8)
    yield Case("resnet152_v2", "imagenet", 64, 1e-3, fine_rate=1e-8)
    yield Case("mobilenet", "imagenet", 64, 1e-3, fine_rate=3e-8)
    yield Case("nasnet", "imagenet", 64, 3e-3, fine_rate=3e-10)
    yield Case("official_resnet18", "imagenet", 64, 1.5e-4, fine_rate=3e-7)
    yield Case("official_resnet18_v2", "imagenet", 64, 3e-4, fine_rate=3e-6)
    yield Case("official_resnet50", "imagenet", 64, 1.5e-4, fine_rate=3e-8)
    yield Case("official_resnet50_v2", "imagenet", 64, 3e-4, fine_rate=3e-7)


def cifar10() -> Iterator[Case]:
    yield Case("trivial_cifar", "cifar10", 32, 0.01, scale=1, model="trivial")
    yield Case("alexnet_cifar", "cifar10", 32, 0.0005, scale=1, model="alexnet")
    yield Case("cifar10_full", "cifar10", 32, 0.025, scale=10)
    yield Case("resnet20", "cifar10", 16, 2e-4)
    yield Case("resnet32", "cifar10", 16, 1e-4, fine_rate=1e-5)
    yield Case("resnet44", "cifar10", 16, 1e-4, fine_rate=5e-6)
    yield Case("resnet56", "cifar10", 16, 1e-4, fine_rate=3e-6)
    yield Case("resnet110", "cifar10", 16, 3e-5, fine_rate=3e-7)
    for depth in (20, 32, 44, 56):
        yield Case(f"resnet{depth}_v2", "cifar10", 16, 3e-4)
    yield Case("resnet110_v2", "cifar10", 16, 3e-4, fine_rate=1e-5)
    for name in ("densenet40_k12", "densenet100_k12", "densenet100_k24"):
        yield Case(name, "cifar10", 16, 3e-4)


def mnist() -> Iterator[Case]:
    yield Case("mnist_deep", "mnist", 28, 0.00003, scale=1)
    yield Case("lenet_mnist", "mnist", 28, 0.001, scale=1, model="lenet")
    yield Case("trivial_mnist", "mnist", 28, 0.01, scale=1, model="trivial")


def all_cases() -> list[Case]:
    return [*imagenet(), *cifar10(), *mnist()]
