"""The peer of the preprocessing benchmark: JSON lines to .bin/.idx with a pool of processes over Hugging Face's tokenizers and one
writer, as Megatron-LM's tools/preprocess_data.py does it (Pool.imap in chunks of 32 lines, an IndexedDatasetBuilder).

It is kinder to itself than the original: the fast tokenizer without the transformers layer around it, and no imports of torch.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import struct

import numpy

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each process has one core


class Encoder:
    tokenizer = None

    @staticmethod
    def initializer(path):
        from tokenizers import Tokenizer

        Encoder.tokenizer = Tokenizer.from_file(path)

    @staticmethod
    def encode(line):
        text = json.loads(line)["text"]
        ids = Encoder.tokenizer.encode(text).ids
        return ids, [len(ids)] if ids else []


class Builder:
    def __init__(self, prefix):
        self.prefix = prefix
        self.bin = open(prefix + ".bin", "wb")
        self.lengths = []
        self.documents = [0]

    def add_document(self, ids, lengths):
        self.bin.write(numpy.array(ids, dtype=numpy.int32).tobytes(order="C"))
        self.lengths.extend(lengths)
        self.documents.append(len(self.lengths))

    def finalize(self):
        self.bin.close()
        starts = itertools.accumulate((4 * length for length in self.lengths[:-1]), initial=0) if self.lengths else []
        with open(self.prefix + ".idx", "wb") as index:
            index.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 4, len(self.lengths), len(self.documents)))
            index.write(numpy.array(self.lengths, dtype=numpy.int32).tobytes())
            index.write(numpy.array(list(starts), dtype=numpy.int64).tobytes())
            index.write(numpy.array(self.documents, dtype=numpy.int64).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output-prefix", required=True)
    parser.add_argument("--tokenizer-model", required=True, help="a tokenizer.json")
    parser.add_argument("--workers", type=int, required=True)
    args = parser.parse_args()
    builder = Builder(args.output_prefix + "_text_document")
    with multiprocessing.Pool(args.workers, Encoder.initializer, (args.tokenizer_model,)) as pool:
        with open(args.input, encoding="utf-8") as lines:
            for ids, lengths in pool.imap(Encoder.encode, lines, 32):
                builder.add_document(ids, lengths)
    builder.finalize()


if __name__ == "__main__":
    main()
