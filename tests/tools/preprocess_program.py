"""What the tests of muster-preprocess share: the program, a small tokenizer, and reading of .bin/.idx."""

import os
import pathlib
import struct
import subprocess

import numpy

GOLDEN = pathlib.Path(os.environ["MUSTER_GOLDEN"])
SOURCE = pathlib.Path(os.environ["MUSTER_SOURCE"])
PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "muster-preprocess")
TINY = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", str(SOURCE / "recipes/tiny_tokenizer")]


def run(*args, **kwargs):
    return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, text=True, check=False, **kwargs)


def good(*args, **kwargs):
    done = run(*args, **kwargs)
    assert done.returncode == 0, done.stderr
    return done


def leftovers(folder, prefix):
    return sorted(p.name for p in pathlib.Path(folder).iterdir() if p.name.startswith(prefix))


def files_of(prefix):
    return [pathlib.Path(f"{prefix}.{suffix}").read_bytes() for suffix in ("bin", "idx")]


def read_documents(prefix):
    """Documents as lists of sequences, which are lists of tokens."""
    tokens, index = files_of(prefix)
    code, sequences, entries = struct.unpack_from("<BQQ", index, 17)
    lengths = numpy.frombuffer(index, numpy.int32, sequences, 34)
    bounds = numpy.frombuffer(index, numpy.int64, entries, 34 + 12 * sequences)
    ends = numpy.cumsum(lengths)
    tokens = numpy.frombuffer(tokens, {4: numpy.int32, 8: numpy.uint16}[code])
    rows = [tokens[end - length : end].tolist() for end, length in zip(ends, lengths)]
    return [rows[bounds[d] : bounds[d + 1]] for d in range(entries - 1)]


def tokenize(texts, *flags):
    import json

    done = good("tokenize", "--json-lines", *flags, input="".join(json.dumps(text) + "\n" for text in texts))
    return [list(map(int, line.split())) for line in done.stdout.split("\n")[:-1]]
