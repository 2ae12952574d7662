#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Write the program of the text decoder for neuron-pack.

usage: decoder_pack.py WEIGHTS.npz OUT_DIR

A run takes one token of each of SLOTS sequences: the token and its position (step), and the
keys and values of what came before, in blocks that may lie anywhere in device memory. It gives
logits, and the keys and values of the token, which the caller has in the right block. Section
numbers are those of kmod/emu/ISA.md; decoder_ref.c is the same computation in C.
"""
import json
import os
import struct
import sys

import numpy as np

SLOTS, BLOCKS, TOKENS = 4, 8, 16	# blocks of a sequence, tokens of a block
LAYERS, HEADS, WIDTH, HIDDEN = 2, 4, 64, 256
CONTEXT, VOCABULARY = BLOCKS * TOKENS, 96
HEAD = WIDTH // HEADS
EPS = 1e-5

PE, ACT, POOL, DVE, SP = range(5)
MATMUL, TENSOR, ACTIVATE, REDUCE, CAST, MEMSET, GATHER = range(0x20, 0x27)
ADD, SUB, MUL, MAX, MIN, SELECT = range(6)
IDENTITY, RELU, SIGMOID, TANH, EXP, RECIPROCAL, RSQRT = range(7)
IMMEDIATE, COLUMN, TRANSPOSED = 1, 2, 2
BF16, INT32, FP32 = 6, 8, 10
SIZE = {BF16: 2, INT32: 4, FP32: 4}

top = 0			# of the state buffer in use


class Matrix:
	"""Rows and columns somewhere in the state buffer."""

	def __init__(self, at, dtype, rows, cols, stride=None):
		self.at, self.dtype, self.rows, self.cols = at, dtype, rows, cols
		self.stride = cols * SIZE[dtype] if stride is None else stride

	def part(self, row, rows, col=0, cols=None):
		return Matrix(self.at + row * self.stride + col * SIZE[self.dtype], self.dtype,
			      rows, self.cols if cols is None else cols, self.stride)

	def repeated(self, rows):
		return Matrix(self.at, self.dtype, rows, self.cols, 0)


def place(dtype, rows, cols):
	global top
	m = Matrix(top, dtype, rows, cols)
	top += (rows * m.stride + 63) // 64 * 64
	return m


steps = []		# (engine, instruction), one after the other


def header(opcode, op=0, flags=0, src=0, dst=0):
	return struct.pack("<6BH", opcode, 0x4e, op, flags, src, dst, 0)


def emit(engine, opcode, *operands, **fields):
	words = struct.pack("<%dI" % len(operands), *operands)
	steps.append((engine, (header(opcode, **fields) + words).ljust(64, b"\0")))


def matmul(a, b, c, flags=0):
	assert a.cols == (b.cols if flags else b.rows) and c.cols == (b.rows if flags else b.cols)
	emit(PE, MATMUL, a.at, b.at, c.at, a.stride, b.stride, c.stride, c.rows, c.cols, a.cols,
	     flags=flags, src=a.dtype, dst=c.dtype)


def unary(engine, opcode, a, d, op=0):
	emit(engine, opcode, a.at, 0, d.at, a.stride, 0, d.stride, a.rows, a.cols, 0, op=op,
	     src=a.dtype, dst=d.dtype)


def tensor(op, a, b, d):
	"""b: a matrix, a column, or a number."""
	at, stride, imm, flags = 0, 0, 0, IMMEDIATE
	if isinstance(b, Matrix):
		at, stride = b.at, b.stride
		flags = COLUMN if b.cols == 1 < a.cols else 0
	else:
		imm, = struct.unpack("<I", struct.pack("<f", b))
	emit(DVE, TENSOR, a.at, at, d.at, a.stride, stride, d.stride, a.rows, a.cols, imm, op=op,
	     flags=flags, src=a.dtype, dst=d.dtype)


def gather(table, index, d):
	emit(DVE, GATHER, table.at, index.at, d.at, table.stride, index.stride, d.stride, d.rows,
	     d.cols, table.rows, src=table.dtype, dst=d.dtype)


def norm(x, square, column, d):
	tensor(MUL, x, x, square)
	unary(DVE, REDUCE, square, column, ADD)
	tensor(MUL, column, 1 / WIDTH, column)
	tensor(ADD, column, EPS, column)
	unary(ACT, ACTIVATE, column, column, RSQRT)
	tensor(MUL, x, column, d)


def program(w, step, cache, logits):
	x, h = place(FP32, SLOTS, WIDTH), place(FP32, SLOTS, WIDTH)
	narrow, q, o = (place(BF16, SLOTS, WIDTH) for _ in range(3))
	column, sums = place(FP32, SLOTS, 1), place(FP32, SLOTS * HEADS, 1)
	score = place(FP32, SLOTS * HEADS, CONTEXT + 1)
	weight = place(BF16, SLOTS * HEADS, CONTEXT + 1)
	valid, narrow_valid = (place(t, SLOTS, CONTEXT + 1) for t in (FP32, BF16))
	up, hidden = place(FP32, SLOTS, HIDDEN), place(BF16, SLOTS, HIDDEN)
	token, position = (Matrix(step.part(i, 1).at, INT32, SLOTS, 1) for i in range(2))
	slots = [cache.part(i * (CONTEXT + 1), CONTEXT + 1) for i in range(SLOTS)]

	gather(w["embedding"], token, x)
	gather(w["position"], position, h)
	tensor(ADD, x, h, x)
	# Above 0: tokens before this one, and in the last place itself. Others are anything.
	unary(DVE, CAST, position, column)
	tensor(ADD, w["index"].repeated(SLOTS), column, valid)
	tensor(MAX, valid, 0, valid)
	unary(DVE, CAST, valid, narrow_valid)
	for i, s in enumerate(slots):
		known = Matrix(narrow_valid.part(i, 1).at, BF16, CONTEXT, 1)
		tensor(SELECT, s.part(0, CONTEXT), known, s.part(0, CONTEXT))
	for layer in range(LAYERS):
		first = layer * 2 * WIDTH	# column of the keys, which the values follow

		norm(x, h, column, narrow)
		matmul(narrow, w["q%d" % layer], q)
		matmul(narrow, w["kv%d" % layer],
		       Matrix(slots[0].part(CONTEXT, 1, first).at, BF16, SLOTS, 2 * WIDTH,
			      (CONTEXT + 1) * cache.stride))
		for i in range(SLOTS * HEADS):
			s, at = slots[i // HEADS], i % HEADS * HEAD
			matmul(q.part(i // HEADS, 1, at, HEAD),
			       s.part(0, CONTEXT + 1, first + at, HEAD), score.part(i, 1),
			       TRANSPOSED)
		unary(DVE, REDUCE, score, sums, MAX)
		unary(ACT, ACTIVATE, sums, sums, RELU)
		tensor(SUB, score, sums, score)
		unary(ACT, ACTIVATE, score, score, EXP)
		for i in range(SLOTS):
			part = score.part(i * HEADS, HEADS)
			tensor(SELECT, part, valid.part(i, 1).repeated(HEADS), part)
		unary(DVE, REDUCE, score, sums, ADD)
		unary(ACT, ACTIVATE, sums, sums, RECIPROCAL)
		tensor(MUL, score, sums, weight)
		for i in range(SLOTS * HEADS):
			s, at = slots[i // HEADS], i % HEADS * HEAD
			matmul(weight.part(i, 1), s.part(0, CONTEXT + 1, first + WIDTH + at, HEAD),
			       o.part(i // HEADS, 1, at, HEAD))
		matmul(o, w["o%d" % layer], h)
		tensor(ADD, x, h, x)
		norm(x, h, column, narrow)
		matmul(narrow, w["up%d" % layer], up)
		unary(ACT, ACTIVATE, up, hidden, RELU)
		matmul(hidden, w["down%d" % layer], h)
		tensor(ADD, x, h, x)
	norm(x, h, column, narrow)
	matmul(narrow, w["embedding"], logits, TRANSPOSED)


def semaphore(opcode, op, flags, index, value):
	return (header(opcode, op, flags) + struct.pack("<2I", index, value)).ljust(64, b"\0")


def wait(index):
	return semaphore(0x10, 1, 1, index, 1)


def post(index):
	return semaphore(0x11, 1, 0, index, 1)


def trigger(entry):
	return (header(0x14) + struct.pack("<2H2I", 0xffff, 0xffff, entry, 0)).ljust(64, b"\0")


def engines():
	"""The binaries: a turn passes from engine to engine (libneuron/docs/loading.md)."""
	code = [(header(1) + struct.pack("<I2H", 0x4153494e, 1, e)).ljust(64, b"\0")
		for e in range(5)]
	code[SP] += trigger(0) + trigger(1) + wait(8) + wait(9)
	turn = SP
	for engine, instruction in steps + [(SP, trigger(2) + wait(10))]:
		if engine != turn:
			code[turn] += post(engine)
			code[engine] += wait(engine)
			turn = engine
		code[engine] += instruction
	code[SP] += (header(0x15) + struct.pack("<2IQ", 1, 0, 0)).ljust(64, b"\0")
	return code


def transfer(name, m, rows, outwards=False):
	"""Of whole rows of m."""
	size = rows * m.stride
	sides = [("from", name, 0), ("to", "sbuf", m.at)]
	if outwards:
		sides = [("from", "sbuf", m.at), ("to", name, 0)]
	desc = {"op": "copy"}
	for side, var, off in sides:
		desc.update({side: var, side + "_off": off, side + "_steps": [1],
			     side + "_sizes": [size]})
	return desc


def members(out, weights):
	"""All that is in the archive: weights, variables, transfers, binaries."""
	names = {FP32: "float32", BF16: "bfloat16", INT32: "int32"}
	blob, w = b"", {}
	for name, dtype, array in weights:
		w[name] = place(dtype, *array.shape)
		blob = blob.ljust(w[name].at, b"\0") + array.tobytes()
	step = place(INT32, 2, SLOTS)
	cache = place(BF16, SLOTS * (CONTEXT + 1), LAYERS * 2 * WIDTH)
	logits = place(FP32, SLOTS, VOCABULARY)
	program(w, step, cache, logits)

	ios = [("step", "input", step, 2)]
	for s in range(SLOTS):
		for b in range(BLOCKS):
			row = s * (CONTEXT + 1) + b * TOKENS
			ios.append(("block%d.%d" % (s, b), "input", cache.part(row, TOKENS),
				    TOKENS))
	for s in range(SLOTS):
		row = cache.part(s * (CONTEXT + 1) + CONTEXT, 1)
		ios.append(("token%d" % s, "output", row, 1))
	ios.append(("logits", "output", logits, SLOTS))
	var = {"sbuf": {"type": "state-buffer", "var_id": 0, "size": top},
	       "weights": {"type": "file", "var_id": 1, "size": len(blob), "alignment": 64,
			   "file_name": "weights.bin"}}
	neff = {"format": "neuron-pack-1", "inputs": [], "outputs": []}
	for i, (name, kind, m, rows) in enumerate(ios):
		var[name] = {"type": kind, "var_id": 2 + i, "size": rows * m.stride,
			     "alignment": 64}
		neff[kind + "s"].append({"name": name, "dtype": names[m.dtype],
					 "shape": [rows, m.cols]})
	dma = [{"id": i, "queue": "qSP%s0" % queue, "semaphore": 8 + i, "desc": desc}
	       for i, (queue, desc) in enumerate([
		("Constants", [transfer("weights", Matrix(0, BF16, 1, len(blob) // 2), 1)]),
		("In", [transfer(name, m, rows) for name, kind, m, rows in ios if kind == "input"]),
		("Out", [transfer(name, m, rows, True) for name, kind, m, rows in ios
			 if kind == "output"])])]
	queues = {d["queue"]: {"type": t, "num_queues": 1, "owner": "sp",
			       "semaphore": d["semaphore"]}
		  for d, t in zip(dma, ["data", "in", "out"])}
	definition = {"name": "definition", "dma_queue": queues, "var": var}
	files = {"sg00/weights.bin": blob}
	docs = {"kelf-0.json": {"version": "0.5", "graphs": [
			{"name": "sg00", "definition": "sg00/def.json"}]},
		"neff.json": neff, "sg00/def.json": definition}
	for e, (key, name) in enumerate(zip(["pe", "act", "pool", "dve", "sp"],
					    ["PE", "Activation", "Pool", "DVE", "SP"])):
		definition.update({key: name + "0.json", key + "_instr": name + "0.bin"})
		docs["sg00/%s0.json" % name] = {"dma": dma if e == SP else [], "instr": []}
		files["sg00/%s0.bin" % name] = engines()[e]
	result = {name: {"json": value} for name, value in docs.items()}
	for name, data in files.items():
		path = os.path.join(out, "decoder-" + os.path.basename(name))
		with open(path, "wb") as f:
			f.write(data)
		result[name] = {"file": os.path.basename(path)}
	return result


def bf16(a):
	bits = np.ascontiguousarray(a, np.float32).view(np.uint32)
	return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype("<u2")


def main():
	w, out = np.load(sys.argv[1]), sys.argv[2]
	weights = [(name, BF16, bf16(w[name])) for name in ("embedding", "position")]
	for i in range(LAYERS):
		# The scale of the scores, a power of two, goes into the queries.
		weights.append(("q%d" % i, BF16, bf16(w["q%d" % i] * np.float32(HEAD ** -0.5))))
		weights += [(name + str(i), BF16, bf16(w[name + str(i)]))
			    for name in ("kv", "o", "up", "down")]
	index = np.append(-np.arange(CONTEXT), 1).astype("<f4")[None, :]
	weights.append(("index", FP32, index))
	with open(os.path.join(out, "decoder.json"), "w") as f:
		json.dump({"format": "neuron-pack-1", "name": "decoder",
			   "members": members(out, weights)}, f, indent="\t")
		f.write("\n")


main()
