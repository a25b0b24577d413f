"""Data-parallel training of a small convolutional network of AlexNet's shape: each rank has its part of every batch.

Five convolutions, three of them followed by pooling, then three fully connected layers that have most of the
parameters; images are 32 x 32 (AlexNet's 224 x 224), the widths those of AlexNet by size / 64. The gradient of a layer, all
ranks' together, is summed by an Iallreduce that begins when the backward pass leaves the layer, while it goes on with
the layer before: the large ones first. Weights change as their sums come.

Images are made from a seed and from their numbers: those of a class are alike. So the loss of a step is the same on any number
of ranks but for rounding.

Prints the loss of each step, by how much the ranks' weights differ (0), a checksum of them (of its own for each way of
summing), and per step the wall time, the CPU time of all ranks, their time in MPI, on average and at most, and all
ranks' calls and bytes sent (loops.py).
"""

from __future__ import annotations

import argparse
import hashlib
from itertools import pairwise

import loops
import numpy as np
from mpi4py import MPI

SIDE, COLOURS, CLASSES = 32, 3, 10
RATE = 0.01
WARM_UP = 2  # steps that are not timed


class Convolution:
    """Cells of (image, y, x, channel) by a square kernel, padded to keep their number, then the positive part of them."""

    def __init__(self, generator: np.random.Generator, kernel: int, channels: int, width: int) -> None:
        self.kernel = kernel
        self.weights = weights_of(generator, kernel * kernel * channels, width)
        self.gradient = np.empty_like(self.weights)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The layer's output."""
        k, edge = self.kernel, self.kernel // 2
        self.padded = np.pad(x, ((0, 0), (edge, edge), (edge, edge), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(self.padded, (k, k), axis=(1, 2))
        self.columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, len(self.weights) - 1)
        y = self.columns @ self.weights[:-1] + self.weights[-1]
        self.y = np.maximum(y, 0).reshape(*x.shape[:3], -1)
        return self.y

    def backward(self, dy: np.ndarray) -> None:
        """Sets the gradient, of `dy` by the output."""
        self.dy = (dy * (self.y > 0)).reshape(-1, dy.shape[-1])
        np.dot(self.columns.T, self.dy, out=self.gradient[:-1])
        self.gradient[-1] = self.dy.sum(axis=0)

    def before(self) -> np.ndarray:
        """The gradient by the input, after backward."""
        k, edge, dx = self.kernel, self.kernel // 2, np.zeros_like(self.padded)
        images, rows, columns = self.y.shape[:3]
        parts = (self.dy @ self.weights[:-1].T).reshape(images, rows, columns, k, k, -1)
        for i in range(k):
            for j in range(k):
                dx[:, i : i + rows, j : j + columns] += parts[:, :, :, i, j]
        return dx[:, edge : edge + rows, edge : edge + columns]


class Pooling:
    """The largest of each 2 x 2 cells."""

    weights = gradient = None

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The layer's output."""
        images, rows, columns, channels = x.shape
        self.x = x.reshape(images, rows // 2, 2, columns // 2, 2, channels)
        self.y = self.x.max(axis=(2, 4), keepdims=True)
        return self.y[:, :, 0, :, 0]

    def backward(self, dy: np.ndarray) -> None:
        """Keeps the gradient by the output."""
        self.dy = dy.reshape(self.y.shape)

    def before(self) -> np.ndarray:
        """The gradient by the input, after backward."""
        images, rows, _, columns, _, channels = self.x.shape
        return ((self.x == self.y) * self.dy).reshape(images, 2 * rows, 2 * columns, channels)


class Connected:
    """All of an image's cells by a matrix, then the positive part of them but in the last layer."""

    def __init__(self, generator: np.random.Generator, before: int, width: int, last: bool = False) -> None:
        self.last = last
        self.weights = weights_of(generator, before, width)
        self.gradient = np.empty_like(self.weights)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """The layer's output."""
        self.shape, self.x = x.shape, x.reshape(len(x), -1)
        y = self.x @ self.weights[:-1] + self.weights[-1]
        self.y = y if self.last else np.maximum(y, 0)
        return self.y

    def backward(self, dy: np.ndarray) -> None:
        """Sets the gradient, of `dy` by the output."""
        self.dy = dy if self.last else dy * (self.y > 0)
        np.dot(self.x.T, self.dy, out=self.gradient[:-1])
        self.gradient[-1] = self.dy.sum(axis=0)

    def before(self) -> np.ndarray:
        """The gradient by the input, after backward."""
        return (self.dy @ self.weights[:-1].T).reshape(self.shape)


def weights_of(generator: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    """Weights to begin with; the last row is the bias."""
    weights = generator.standard_normal((inputs + 1, outputs), np.float32) * np.float32((2 / inputs) ** 0.5)
    weights[-1] = 0
    return weights


class Network:
    """The layers, and how a batch goes through them."""

    def __init__(self, size: int) -> None:
        generator = np.random.default_rng(1)
        widths = [COLOURS, size, 3 * size, 6 * size, 4 * size, 4 * size]
        kernels = [5, 5, 3, 3, 3]
        convolutions = [
            Convolution(generator, k, *ends) for k, ends in zip(kernels, pairwise(widths), strict=True)
        ]
        cells = 64 * size  # of an image: 4 x 4 places after three poolings
        self.layers = [convolutions[0], Pooling(), convolutions[1], Pooling(), *convolutions[2:], Pooling()]
        self.layers += [
            Connected(generator, cells, cells),
            Connected(generator, cells, cells),
            Connected(generator, cells, CLASSES, last=True),
        ]

    def loss(self, images: np.ndarray, classes: np.ndarray, batch: int) -> tuple[float, np.ndarray]:
        """These images' part of the mean loss of a batch, and its gradient by the output."""
        x = images
        for layer in self.layers:
            x = layer.forward(x)
        chances = np.exp(x - x.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        which = np.arange(len(classes)), classes
        loss = -np.log(chances[which]).sum() / batch
        chances[which] -= 1
        return float(loss), chances / np.float32(batch)


def images_of(numbers: range) -> tuple[np.ndarray, np.ndarray]:
    """Images of these numbers and their classes: the pattern of the class under noise."""
    patterns = np.random.default_rng(2).standard_normal((CLASSES, SIDE, SIDE, COLOURS), np.float32)
    noise = [
        np.random.default_rng((3, number)).standard_normal((SIDE, SIDE, COLOURS), np.float32)
        for number in numbers
    ]
    classes = np.array(numbers) * 7 % CLASSES
    return (patterns[classes] + np.array(noise).reshape(-1, SIDE, SIDE, COLOURS)) / 2, classes


class Training:
    """A rank's network and its part of the batches."""

    def __init__(self, comm: MPI.Intracomm, size: int, batch: int, batches: int) -> None:
        self.comm, self.batch = comm, batch
        self.mpi = loops.Clock()
        self.network = Network(size)
        for layer in filter(has_weights, self.network.layers):
            with self.mpi.call(layer.weights.nbytes if comm.rank == 0 else 0):
                comm.Bcast(layer.weights)
        first, end = (batch * rank // comm.size for rank in (comm.rank, comm.rank + 1))
        self.batches = [images_of(range(batch * i + first, batch * i + end)) for i in range(batches)]
        self.losses: list[float] = []

    def step(self) -> None:
        """One batch: forward, backward, and new weights."""
        images, classes = self.batches[len(self.losses) % len(self.batches)]
        part, dy = self.network.loss(images, classes, self.batch)
        loss = np.array([part])
        under_way = [self.begin_sum(loss)]
        layers = self.network.layers
        changing = []
        for i in reversed(range(len(layers))):
            layers[i].backward(dy)
            if has_weights(layers[i]):
                changing.append((layers[i], self.begin_sum(layers[i].gradient)))
            if i > 0:
                dy = layers[i].before()
        for layer, request in changing:
            with self.mpi.call():
                request.Wait()
            layer.gradient *= np.float32(RATE)
            layer.weights -= layer.gradient
        with self.mpi.call():
            under_way[0].Wait()
        self.losses.append(loss[0])

    def begin_sum(self, array: np.ndarray) -> MPI.Request:
        """Sums `array` of all ranks in place."""
        with self.mpi.call(array.nbytes):
            return self.comm.Iallreduce(MPI.IN_PLACE, array)

    def check(self) -> tuple[float, str]:
        """By how much ranks' weights differ, and a checksum of this one's."""
        checksum, difference = hashlib.sha256(), 0.0
        for layer in filter(has_weights, self.network.layers):
            checksum.update(layer.weights.tobytes())
            least, most = np.empty_like(layer.weights), np.empty_like(layer.weights)
            self.comm.Allreduce(layer.weights, least, MPI.MIN)
            self.comm.Allreduce(layer.weights, most, MPI.MAX)
            difference = max(difference, float((most - least).max()))
        return difference, checksum.hexdigest()


def has_weights(layer: Convolution | Pooling | Connected) -> bool:
    """Whether there is anything to learn."""
    return layer.weights is not None


def main() -> None:
    """Runs the steps."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", type=int, default=16, help="channels of the first convolution; AlexNet: 64")
    parser.add_argument("--batch", type=int, default=32, help="images in a step, of all ranks together")
    parser.add_argument("--loops", type=int, default=20, help="steps")
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    if arguments.batch < comm.size:
        raise SystemExit(f"a batch of {arguments.batch} has no image for some of {comm.size} ranks")
    training = Training(comm, arguments.size, arguments.batch, batches=4)
    for _ in range(WARM_UP):
        training.step()
    figures = loops.measure(comm, training.mpi, arguments.loops, training.step)
    difference, checksum = training.check()
    if comm.rank == 0:
        for step, loss in enumerate(training.losses):
            print(f"loss of step {step}: {loss:.7f}")
        print(f"loss: {training.losses[-1]:.9f}")
        loops.report(difference, checksum, figures)


if __name__ == "__main__":
    main()
