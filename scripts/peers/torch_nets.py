"""The networks of this program in PyTorch: layer for layer the same, so that speeds can be compared.

They differ from torchvision's: 1001 classes, TensorFlow's SAME padding, ResNets with their strides on the first 1x1
convolution of a block (v1; on the 3x3 one in resnet50_v1.5), GoogLeNet without batch norm, Inception v3 without the
auxiliary head and without gamma.
`PARAMETERS` has the trainable parameters of each; torch_step.py refuses to measure a network with another number.
"""
import torch
from torch import nn
from torch.nn import functional as F

PARAMETERS = {"alexnet": 61_842_345, "vgg16": 138_361_641, "googlenet": 6_999_577, "inception3": 23_819_401,
              "resnet50": 25_559_081, "resnet50_v1.5": 25_559_081, "resnet152": 60_194_857}
IMAGE_SIZE = {"alexnet": 227, "vgg16": 224, "googlenet": 224, "inception3": 299, "resnet50": 224, "resnet50_v1.5": 224,
              "resnet152": 224}
CLASSES = 1001


def conv(inputs, outputs, kernel, stride=1, padding=0):
    """Convolution with bias and ReLU."""
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU(inplace=True))


def classifier(features, widths, dropout=0.5):
    layers = [nn.Flatten()]
    for width in widths:
        layers += [nn.Linear(features, width), nn.ReLU(inplace=True), nn.Dropout(dropout)]
        features = width
    return nn.Sequential(*layers, nn.Linear(features, CLASSES))


def alexnet():
    return nn.Sequential(
        conv(3, 64, 11, 4), nn.MaxPool2d(3, 2), conv(64, 192, 5, 1, 2), nn.MaxPool2d(3, 2), conv(192, 384, 3, 1, 1),
        conv(384, 384, 3, 1, 1), conv(384, 256, 3, 1, 1), nn.MaxPool2d(3, 2), classifier(256 * 6 * 6, [4096, 4096]))


def vgg16():
    layers, inputs = [], 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.append(conv(inputs, width, 3, 1, 1))
            inputs = width
        layers.append(nn.MaxPool2d(2, 2))
    return nn.Sequential(*layers, classifier(512 * 7 * 7, [4096, 4096]))


class Branches(nn.Module):
    """Branches over one input, their outputs concatenated along the channels."""

    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([branch(x) for branch in self.branches], 1)


class Pad(nn.Module):
    """Zeros at left, right, top and bottom: TensorFlow's SAME where it is not symmetric."""

    def __init__(self, *sides):
        super().__init__()
        self.sides = sides

    def forward(self, x):
        return F.pad(x, self.sides)


def max_pool_same():
    """3x3 with stride 2 on an even size: SAME pads one row at the bottom, as rounding up does."""
    return nn.MaxPool2d(3, 2, ceil_mode=True)


def googlenet():
    def module(inputs, k, lm, np, q):
        return Branches(conv(inputs, k, 1), nn.Sequential(conv(inputs, lm[0], 1), conv(lm[0], lm[1], 3, 1, 1)),
                        nn.Sequential(conv(inputs, np[0], 1), conv(np[0], np[1], 5, 1, 2)),
                        nn.Sequential(nn.MaxPool2d(3, 1, 1), conv(inputs, q, 1)))

    return nn.Sequential(
        Pad(2, 3, 2, 3), conv(3, 64, 7, 2), max_pool_same(), conv(64, 64, 1), conv(64, 192, 3, 1, 1), max_pool_same(),
        module(192, 64, (96, 128), (16, 32), 32), module(256, 128, (128, 192), (32, 96), 64), max_pool_same(),
        module(480, 192, (96, 208), (16, 48), 64), module(512, 160, (112, 224), (24, 64), 64),
        module(512, 128, (128, 256), (24, 64), 64), module(512, 112, (144, 288), (32, 64), 64),
        module(528, 256, (160, 320), (32, 128), 128), max_pool_same(),
        module(832, 256, (160, 320), (32, 128), 128), module(832, 384, (192, 384), (48, 128), 128),
        nn.AvgPool2d(7), classifier(1024, []))


def conv_bn(inputs, outputs, kernel, stride=1, padding=0, gamma=False, relu=True):
    """Convolution, batch norm, ReLU; Inception's norm (gamma=False) keeps decay .999 and epsilon .001."""
    norm = nn.BatchNorm2d(outputs, eps=1e-5 if gamma else 1e-3, momentum=0.1 if gamma else 0.001)
    norm.weight.requires_grad_(gamma)
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False), norm]
    return nn.Sequential(*layers, *([nn.ReLU(inplace=True)] if relu else []))


def inception3():
    def row(inputs, width):  # height 1
        return conv_bn(inputs, width, (1, 7), 1, (0, 3))

    def column(inputs, width):
        return conv_bn(inputs, width, (7, 1), 1, (3, 0))

    def average():
        return nn.AvgPool2d(3, 1, 1, count_include_pad=False)

    def a(inputs, n):
        return Branches(conv_bn(inputs, 64, 1), nn.Sequential(conv_bn(inputs, 48, 1), conv_bn(48, 64, 5, 1, 2)),
                        nn.Sequential(conv_bn(inputs, 64, 1), conv_bn(64, 96, 3, 1, 1), conv_bn(96, 96, 3, 1, 1)),
                        nn.Sequential(average(), conv_bn(inputs, n, 1)))

    def b(inputs):
        return Branches(conv_bn(inputs, 384, 3, 2),
                        nn.Sequential(conv_bn(inputs, 64, 1), conv_bn(64, 96, 3, 1, 1), conv_bn(96, 96, 3, 2)),
                        nn.MaxPool2d(3, 2))

    def c(n):
        return Branches(conv_bn(768, 192, 1), nn.Sequential(conv_bn(768, n, 1), row(n, n), column(n, 192)),
                        nn.Sequential(conv_bn(768, n, 1), column(n, n), row(n, n), column(n, n), row(n, 192)),
                        nn.Sequential(average(), conv_bn(768, 192, 1)))

    def d():
        return Branches(nn.Sequential(conv_bn(768, 192, 1), conv_bn(192, 320, 3, 2)),
                        nn.Sequential(conv_bn(768, 192, 1), row(192, 192), column(192, 192), conv_bn(192, 192, 3, 2)),
                        nn.MaxPool2d(3, 2))

    def split():
        return Branches(conv_bn(384, 384, (1, 3), 1, (0, 1)), conv_bn(384, 384, (3, 1), 1, (1, 0)))

    def e(inputs, pool):
        return Branches(conv_bn(inputs, 320, 1), nn.Sequential(conv_bn(inputs, 384, 1), split()),
                        nn.Sequential(conv_bn(inputs, 448, 1), conv_bn(448, 384, 3, 1, 1), split()),
                        nn.Sequential(pool, conv_bn(inputs, 192, 1)))

    return nn.Sequential(
        conv_bn(3, 32, 3, 2), conv_bn(32, 32, 3), conv_bn(32, 64, 3, 1, 1), nn.MaxPool2d(3, 2), conv_bn(64, 80, 1),
        conv_bn(80, 192, 3), nn.MaxPool2d(3, 2), a(192, 32), a(256, 64), a(288, 64), b(288), c(128), c(160), c(160),
        c(192), d(), e(1280, average()), e(2048, nn.MaxPool2d(3, 1, 1)), nn.AvgPool2d(8), classifier(2048, []))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride, stride_in_3x3):
        super().__init__()
        outputs = 4 * width
        first, second = (1, stride) if stride_in_3x3 else (stride, 1)
        self.shortcut = (nn.Identity() if inputs == outputs else
                         conv_bn(inputs, outputs, 1, stride, gamma=True, relu=False))
        self.body = nn.Sequential(conv_bn(inputs, width, 1, first, gamma=True),
                                  conv_bn(width, width, 3, second, 1, gamma=True),
                                  conv_bn(width, outputs, 1, gamma=True, relu=False))

    def forward(self, x):
        return F.relu_(self.body(x) + self.shortcut(x))


def resnet(counts, stride_in_3x3=False):
    layers, inputs = [conv_bn(3, 64, 7, 2, 3, gamma=True), max_pool_same()], 64
    for stage, (width, count) in enumerate(zip((64, 128, 256, 512), counts)):
        for block in range(count):
            layers.append(Bottleneck(inputs, width, 2 if stage > 0 and block == 0 else 1, stride_in_3x3))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), classifier(2048, []))


NETWORKS = {"alexnet": alexnet, "vgg16": vgg16, "googlenet": googlenet, "inception3": inception3,
            "resnet50": lambda: resnet((3, 4, 6, 3)), "resnet50_v1.5": lambda: resnet((3, 4, 6, 3), True),
            "resnet152": lambda: resnet((3, 8, 36, 3))}


def make(name):
    network = NETWORKS[name]()
    trainable = sum(p.numel() for p in network.parameters() if p.requires_grad)
    if trainable != PARAMETERS[name]:
        raise SystemExit(f"{name} has {trainable} trainable parameters here, {PARAMETERS[name]} in this program")
    return network
