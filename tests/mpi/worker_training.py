"""The gradients of examples/training.py's network against differences of its loss."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import numpy as np  # noqa: E402
import training  # noqa: E402

network = training.Network(2)
layers = [layer for layer in network.layers if training.has_weights(layer)]
for layer in layers:
    layer.weights = layer.weights.astype(np.float64)
    layer.gradient = np.empty_like(layer.weights)
images, classes = training.images_of(range(3))

dy = network.loss(images, classes, 3)[1]
for i in reversed(range(len(network.layers))):
    network.layers[i].backward(dy)
    dy = network.layers[i].before()

generator, step = np.random.default_rng(5), 1e-6
for layer in layers:
    steepest = np.abs(layer.gradient).argmax()
    for at in (steepest, *generator.integers(layer.weights.size, size=5), layer.weights.size - 1):
        weights, losses = layer.weights.reshape(-1), []
        before = weights[at]
        for weights[at] in (before + step, before - step):
            losses.append(network.loss(images, classes, 3)[0])
        weights[at] = before
        slope = (losses[0] - losses[1]) / (2 * step)
        assert np.isclose(layer.gradient.reshape(-1)[at], slope, rtol=1e-4, atol=1e-7), (
            type(layer),
            at,
            slope,
        )
    assert layer.gradient.reshape(-1)[steepest] != 0
print("good")
