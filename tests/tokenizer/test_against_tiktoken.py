"""Ids equal to the `tiktoken` package on random texts."""

import base64
import gzip
import json
import shutil

import pytest
import tiktoken

from harness import COUNT, GOLDEN, assert_equal, byte_characters, llama3, random_texts, tokenize

LLAMA3_PATTERN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
MEGATRON_PATTERNS = {
    "v1": r"[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "v2": r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
}
MEGATRON_SPECIALS = ["<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"]


@pytest.mark.parametrize("pattern", ["v1", "v2"])
def test_megatrons_tiktoken_vocabulary(pattern, tmp_path):
    with gzip.open(GOLDEN / "megatron/data/tiktoken8192.json.gz") as packed, open(tmp_path / "vocab.json", "wb") as out:
        shutil.copyfileobj(packed, out)
    entries = json.loads((tmp_path / "vocab.json").read_text())
    names = MEGATRON_SPECIALS + [f"<SPECIAL_{i}>" for i in range(7, 1000)]
    reference = tiktoken.Encoding(
        "megatron",
        pat_str=MEGATRON_PATTERNS[pattern],
        mergeable_ranks={base64.b64decode(e["token_bytes"]): e["rank"] + 1000 for e in entries},
        special_tokens={name: i for i, name in enumerate(names)},
    )
    texts = random_texts(COUNT // 20) + ["<s>a</s> <SPECIAL_7><SPECIAL_999><SPECIAL_1000><SPECIAL_1", "<mask", "<<unk>>"]
    flags = ["--vocab-size", str(len(entries) + 1000), "--tiktoken-pattern", pattern]
    got = tokenize(tmp_path / "vocab.json", texts, *flags, kind="TikTokenizer")
    assert_equal(texts, got, reference.encode_batch(texts, allowed_special="all"))


def write_ranks(path, tokens):
    path.write_text("".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in enumerate(tokens)))


def llama3_tokens(folder):
    llama3(folder)
    vocab = json.loads((folder / "tokenizer.json").read_text())["model"]["vocab"]
    alphabet = {c: b for b, c in enumerate(byte_characters())}
    return [bytes(alphabet[c] for c in token) for token in sorted(vocab, key=vocab.get)]


def test_llama3_on_all_strings(tmp_path):
    """The same vocabulary in tiktoken's form; special tokens as plain text, as tiktoken reads them."""
    tokens = llama3_tokens(tmp_path)
    write_ranks(tmp_path / "tokenizer.model", tokens)
    ranks = {token: i for i, token in enumerate(tokens)}
    reference = tiktoken.Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens={})
    texts = random_texts(COUNT, seed=2)
    flags = ["--split-special-tokens", "--tokenizer-hf-no-include-special-tokens"]
    got = tokenize(tmp_path / "tokenizer.model", texts, *flags, kind="TikTokenizer")
    assert_equal(texts, got, reference.encode_ordinary_batch(texts))


def test_llama3_as_tiktoken_and_as_hugging_face_file_are_equal(tmp_path):
    write_ranks(tmp_path / "tokenizer.model", llama3_tokens(tmp_path))
    texts = random_texts(COUNT // 20)
    assert_equal(texts, tokenize(tmp_path / "tokenizer.model", texts, kind="TikTokenizer"), tokenize(tmp_path, texts))


def test_a_smaller_vocabulary_in_llama3s_form(tmp_path):
    """Special tokens follow the ranks, however many there are."""
    tokens = llama3_tokens(tmp_path)[:3000]
    write_ranks(tmp_path / "tokenizer.model", tokens)
    ranks = {token: i for i, token in enumerate(tokens)}
    added = json.loads((tmp_path / "tokenizer.json").read_text())["added_tokens"]
    specials = {token["content"]: 3000 + i for i, token in enumerate(added)}
    reference = tiktoken.Encoding("small", pat_str=LLAMA3_PATTERN, mergeable_ranks=ranks, special_tokens=specials)
    texts = random_texts(2000)
    want = [[3000, *ids] for ids in reference.encode_batch(texts, allowed_special="all")]
    assert_equal(texts, tokenize(tmp_path / "tokenizer.model", texts, kind="TikTokenizer"), want)
