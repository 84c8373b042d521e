"""Peak memory of muster-preprocess for texts that can't be cut, under a limit of the system; what needs more is refused by name."""

import json
import pathlib
import random
import resource

import pytest
from preprocess_program import GOLDEN, TINY, good, read_documents, run, tokenize

MIB = 1 << 20
# What a run may have of its own (heap, stacks): 12 MiB for the work, as --max-document-mib 16 gives it, and what it needs anyway.
LIMIT = 110 * MIB
RANDOM = random.Random(4)
SPM = ["--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model", GOLDEN / "megatron/data/spm2000.model"]


def letters(count):
    return bytes(RANDOM.choices(b"abcdefghijklmnopqrstuvwxyz", k=count)).decode()


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


def encode(tmp_path, texts, *flags):
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", "--max-document-mib", "16", "--workers", "2"]
    return run(*args, *flags, preexec_fn=limited)


@pytest.fixture()
def nfc(tmp_path):
    """The tiny tokenizer with a normalizer."""
    file = json.loads(pathlib.Path(TINY[-1], "tokenizer.json").read_text(encoding="utf-8"))
    file["normalizer"] = {"type": "NFC"}
    (tmp_path / "nfc.json").write_text(json.dumps(file))
    return ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", tmp_path / "nfc.json"]


def test_long_words_one_of_them_too_long(tmp_path):
    words = [letters(15 * MIB // 8), "a" * (15 * MIB // 8), letters(15 * MIB // 8)]
    done = encode(tmp_path, words, *TINY)
    assert done.returncode == 0, done.stderr
    assert [len(document[0]) for document in read_documents(tmp_path / "out_text_document")] == list(map(len, tokenize(words, *TINY)))
    done = encode(tmp_path, ["fine", "x" * (9 * MIB // 4)], *TINY)
    assert done.returncode == 65
    assert "in.jsonl:2:1: a single word of 2.25 MiB" in done.stderr
    assert "the limit is 2.00 MiB; --max-document-mib raises it" in done.stderr
    good("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "more", "--max-document-mib", "32", *TINY)


def test_normalized_texts(nfc, tmp_path):
    done = encode(tmp_path, ["e\u0301 " * 160_000, "\U0001f642" * 150_000], *nfc)
    assert done.returncode == 0, done.stderr
    done = encode(tmp_path, ["word " * 200_000], *nfc)
    assert done.returncode == 65 and "in.jsonl:1:1: a text that this tokenizer rewrites first of 0.95 MiB" in done.stderr


def test_sentencepiece_texts(tmp_path):
    texts = [letters(45_000), "word " * 9_000, "\U0001f642" * 11_000] * 9
    done = encode(tmp_path, texts, *SPM)
    assert done.returncode == 0, done.stderr
    done = encode(tmp_path, [letters(50_000), "fine"], *SPM, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    assert "of 0.05 MiB" in (tmp_path / "out.skipped.jsonl").read_text()
    assert len(read_documents(tmp_path / "out_text_document")) == 1


def test_special_tokens_without_end(tmp_path):
    """Many more tokens than fit into memory at once."""
    done = encode(tmp_path, ["<|end_of_text|>" * MIB, "</s>" * 10], *TINY)
    assert done.returncode == 0, done.stderr
