#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Train the text decoder.

usage: decoder_train.py WEIGHTS.npz

A transformer of two layers learns the next character of free software licences, which
every Debian has in /usr/share/common-licenses (package base-files). Any space is one blank;
characters are numbered from the blank on. Everything is seeded and runs in one thread: the
same machine gives the same bytes.
"""
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

import hashlib
import sys
import time

import numpy as np

FILES = ["Apache-2.0", "Artistic", "GPL-1", "GPL-2", "GPL-3", "LGPL-2", "LGPL-2.1", "LGPL-3",
	 "MPL-2.0"]
SHA256 = "824adf181d59796610b9b3a0b7418415755510458b9b27486fec581ab0bdafa2"
LAYERS, HEADS, WIDTH, HIDDEN = 2, 4, 64, 256
CONTEXT, VOCABULARY = 128, 96
BATCH, STEPS, RATE = 24, 2600, 0.004
EPS = 1e-5
F32 = np.float32


def read_text():
	text = b""
	for name in FILES:
		with open("/usr/share/common-licenses/" + name, "rb") as f:
			text += b" ".join(f.read().split()) + b" "
	if hashlib.sha256(text).hexdigest() != SHA256:
		sys.exit("decoder_train.py: other licences than those of Debian 12: " +
			 hashlib.sha256(text).hexdigest())
	return np.array([c - 32 if 32 <= c < 127 else 0 for c in text])


def start(rng):
	def matrix(rows, cols, scale):
		return (rng.randn(rows, cols) * scale).astype(F32)

	w = {"embedding": matrix(VOCABULARY, WIDTH, 0.05), "position": matrix(CONTEXT, WIDTH, 0.05)}
	for i in range(LAYERS):
		w["q%d" % i] = matrix(WIDTH, WIDTH, WIDTH ** -0.5)
		w["kv%d" % i] = matrix(WIDTH, 2 * WIDTH, WIDTH ** -0.5)
		w["o%d" % i] = matrix(WIDTH, WIDTH, 0.5 * WIDTH ** -0.5)
		w["up%d" % i] = matrix(WIDTH, HIDDEN, WIDTH ** -0.5)
		w["down%d" % i] = matrix(HIDDEN, WIDTH, 0.5 * HIDDEN ** -0.5)
	return w


def norm(x):
	r = 1 / np.sqrt((x * x).mean(-1, keepdims=True) + F32(EPS))
	return x * r, r


def norm_back(dh, h, r):
	return r * (dh - h * (dh * h).mean(-1, keepdims=True))


def heads(x):
	return x.reshape(BATCH, CONTEXT, HEADS, -1).transpose(0, 2, 1, 3)


def joined(x):
	return x.transpose(0, 2, 1, 3).reshape(BATCH * CONTEXT, -1)


def loss_and_gradients(w, tokens, wanted, mask):
	"""Mean loss in bits per character, and what it changes by."""
	scale = F32((WIDTH // HEADS) ** -0.5)
	x = (w["embedding"][tokens] + w["position"]).reshape(-1, WIDTH)
	kept, g = [], {}
	for i in range(LAYERS):
		h, r = norm(x)
		q = heads(h @ w["q%d" % i])
		kv = h @ w["kv%d" % i]
		k, v = heads(kv[:, :WIDTH]), heads(kv[:, WIDTH:])
		s = q @ k.transpose(0, 1, 3, 2) * scale + mask
		p = np.exp(s - s.max(-1, keepdims=True))
		p /= p.sum(-1, keepdims=True)
		o = joined(p @ v)
		x = x + o @ w["o%d" % i]
		h2, r2 = norm(x)
		a = np.maximum(h2 @ w["up%d" % i], 0)
		x = x + a @ w["down%d" % i]
		kept.append((h, r, q, k, v, p, o, h2, r2, a))
	y, ry = norm(x)
	z = y @ w["embedding"].T
	z -= z.max(-1, keepdims=True)
	e = np.exp(z)
	total = e.sum(-1, keepdims=True)
	at = np.arange(len(z)), wanted.ravel()
	loss = float((np.log(total[:, 0]) - z[at]).mean()) / np.log(2)

	dz = e / total
	dz[at] -= 1
	dz /= F32(len(z))
	g["embedding"] = dz.T @ y
	dx = norm_back(dz @ w["embedding"], y, ry)
	for i in reversed(range(LAYERS)):
		h, r, q, k, v, p, o, h2, r2, a = kept[i]
		g["down%d" % i] = a.T @ dx
		du = (dx @ w["down%d" % i].T) * (a > 0)
		g["up%d" % i] = h2.T @ du
		dx = dx + norm_back(du @ w["up%d" % i].T, h2, r2)
		g["o%d" % i] = o.T @ dx
		do = heads(dx @ w["o%d" % i].T)
		dp = do @ v.transpose(0, 1, 3, 2)
		ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
		dq = joined(ds @ k)
		dkv = np.concatenate([joined(ds.transpose(0, 1, 3, 2) @ q),
				      joined(p.transpose(0, 1, 3, 2) @ do)], axis=1)
		g["q%d" % i] = h.T @ dq
		g["kv%d" % i] = h.T @ dkv
		dx = dx + norm_back(dq @ w["q%d" % i].T + dkv @ w["kv%d" % i].T, h, r)
	g["position"] = dx.reshape(BATCH, CONTEXT, WIDTH).sum(0)
	np.add.at(g["embedding"], tokens.ravel(), dx)
	return loss, g


def main():
	text = read_text()
	rng = np.random.RandomState(20261124)
	w = start(rng)
	m = {k: np.zeros_like(p) for k, p in w.items()}
	v = {k: np.zeros_like(p) for k, p in w.items()}
	mask = np.triu(np.full((CONTEXT, CONTEXT), -1e9, F32), 1)
	began, mean = time.time(), 0
	for t in range(1, STEPS + 1):
		first = rng.randint(0, len(text) - CONTEXT - 1, BATCH)[:, None] + np.arange(CONTEXT)
		loss, g = loss_and_gradients(w, text[first], text[first + 1], mask)
		mean += (loss - mean) * max(0.01, 1 / t)
		rate = F32(RATE * min(1, t / 100) * (1 - t / (STEPS + 1)))
		for key, p in w.items():
			m[key] += F32(0.1) * (g[key] - m[key])
			v[key] += F32(0.01) * (g[key] * g[key] - v[key])
			p -= rate * (m[key] / F32(1 - 0.9 ** t)) / \
				(np.sqrt(v[key] / F32(1 - 0.99 ** t)) + F32(1e-8))
		if t % 200 == 0:
			print("step %d: %.2f bits per character, %.0f s" %
			      (t, mean, time.time() - began), flush=True)
	np.savez(sys.argv[1], **w)


main()
