#!/usr/bin/env python3
"""Writes data/*.npy, which are committed; needed again only to change them.

Needs numpy and scikit-learn, whose `load_digits` carries the UCI handwritten digits (see data/SOURCE.md). Pixels stay
the integers 0..16 of the source; the programs divide by 16.

  images.npy       [120, 128, 64] i8    10 epochs of 12 batches; the last batch of an epoch wraps around to its first rows
  labels.npy       [120, 128] i32
  test_images.npy  [360, 64] i8         held out, never trained on
  test_labels.npy  [360] i32
  w0.npy b0.npy w1.npy b1.npy  f32      initial parameters: normal with variance 2/64 and 1/128, zero biases
"""

import pathlib

import numpy as np
from sklearn.datasets import load_digits

TRAIN, BATCH, EPOCHS, HIDDEN = 1437, 128, 10, 128


def main():
    digits = load_digits()
    rng = np.random.Generator(np.random.PCG64(2024))
    order = rng.permutation(len(digits.target))
    images = digits.data[order].astype(np.int8)
    labels = digits.target[order].astype(np.int32)

    steps = -(-TRAIN // BATCH)
    rows = np.stack([np.resize(rng.permutation(TRAIN), steps * BATCH) for _ in range(EPOCHS)]).reshape(-1, BATCH)
    arrays = {
        "images": images[rows],
        "labels": labels[rows],
        "test_images": images[TRAIN:],
        "test_labels": labels[TRAIN:],
        "w0": rng.normal(0, (2 / 64) ** 0.5, (64, HIDDEN)).astype(np.float32),
        "b0": np.zeros(HIDDEN, np.float32),
        "w1": rng.normal(0, (1 / HIDDEN) ** 0.5, (HIDDEN, 10)).astype(np.float32),
        "b1": np.zeros(10, np.float32),
    }
    folder = pathlib.Path(__file__).parent / "data"
    folder.mkdir(exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
        print(f"{name}: {array.dtype} {list(array.shape)}")


if __name__ == "__main__":
    main()
