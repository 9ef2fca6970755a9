"""Embeds the lines of stdin with onnxruntime and prints the seconds it took.

usage: embed.py FOLDER THREADS MAX_TOKENS
"""

import sys
import time

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

folder, threads, max_tokens = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
BATCH_TOKENS = 2048

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"])
names = {entry.name for entry in session.get_inputs()}
tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
tokenizer.no_padding()
tokenizer.enable_truncation(max_tokens)
texts = sys.stdin.read().splitlines()


def embed(texts):
    encodings = sorted((e.ids for e in tokenizer.encode_batch(texts)), key=len)
    batches, batch = [], []
    for ids in encodings:
        if batch and (len(batch) + 1) * len(ids) > BATCH_TOKENS:
            batches.append(batch)
            batch = []
        batch.append(ids)
    batches.append(batch)
    for batch in batches:
        width = len(batch[-1])
        ids = np.array([row + [0] * (width - len(row)) for row in batch], dtype=np.int64)
        mask = np.array([[1] * len(row) + [0] * (width - len(row)) for row in batch], dtype=np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden = session.run(["last_hidden_state"], {k: v for k, v in inputs.items() if k in names})[0]
        pooled = (hidden * mask[:, :, None]).sum(axis=1)
        pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)


embed(texts[:1])
started = time.perf_counter()
embed(texts)
print(time.perf_counter() - started)
