#!/usr/bin/env python3
"""The training of digits.mlir in numpy: the expected results of every run. Needs only numpy.

Prints the loss of some steps and the test accuracy, in f32 and in f64; expected.json keeps the f64 figures.
"""

import json
import pathlib
import sys

import numpy as np

HERE = pathlib.Path(__file__).parent
DATA = HERE / "data"
RATE = 0.5


def load(name):
    return np.load(DATA / f"{name}.npy")


def train(dtype):
    """Returns the loss of every step and the parameters after the last."""
    w0, b0, w1, b1 = (load(name).astype(dtype) for name in ("w0", "b0", "w1", "b1"))
    losses = []
    for images, labels in zip(load("images"), load("labels")):
        rows = np.arange(len(labels))
        x = images.astype(dtype) / 16
        h = np.maximum(x @ w0 + b0, 0)
        logits = h @ w1 + b1
        top = logits.max(1)
        exp = np.exp(logits - top[:, None])
        total = exp.sum(1)
        losses.append((np.log(total) + top - logits[rows, labels]).mean())

        dlogits = exp / total[:, None]
        dlogits[rows, labels] -= 1
        dlogits /= len(labels)
        dh = np.where(h > 0, dlogits @ w1.T, 0)
        w1 = w1 - dtype(RATE) * (h.T @ dlogits)
        b1 = b1 - dtype(RATE) * dlogits.sum(0)
        w0 = w0 - dtype(RATE) * (x.T @ dh)
        b0 = b0 - dtype(RATE) * dh.sum(0)
    return np.array(losses), (w0, b0, w1, b1)


def right(parameters):
    """Returns the number of correctly classified held-out images and the least gap between the two best logits."""
    w0, b0, w1, b1 = parameters
    logits = np.maximum(load("test_images").astype(w0.dtype) / 16 @ w0 + b0, 0) @ w1 + b1
    best = np.sort(logits, 1)
    return int((logits.argmax(1) == load("test_labels")).sum()), float((best[:, -1] - best[:, -2]).min())


def main():
    figures = {}
    for dtype in (np.float32, np.float64):
        losses, parameters = train(dtype)
        count, margin = right(parameters)
        print(f"{dtype.__name__}: loss " + " ".join(f"{loss:.4f}" for loss in losses[[0, 11, 35, 71, 119]])
              + f" (steps 1, 12, 36, 72, 120), test accuracy {count}/360 = {count / 360:.2%}, least margin {margin:.4f}")
        figures = {"losses": [round(float(loss), 6) for loss in losses], "right": count, "of": 360}
    path = HERE / "expected.json"
    if "--write" in sys.argv:
        path.write_text(json.dumps(figures) + "\n")
    else:
        expected = json.loads(path.read_text())
        assert expected["right"] == figures["right"] and np.allclose(expected["losses"], figures["losses"], rtol=1e-5)
        print("as in expected.json")
    return 0 if figures["right"] >= 0.95 * 360 else 1


if __name__ == "__main__":
    sys.exit(main())
