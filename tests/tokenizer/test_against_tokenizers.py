"""Ids equal to the `tokenizers` and `tiktoken` packages on random strings of several kinds, for several tokenizers.

MUSTER_TOKENIZER_STRINGS sets how many strings (default 20,000), MUSTER_TOKENIZER_SEED the seed.
"""

import base64
import gzip
import json
import os
import pathlib
import random
import shutil
import subprocess

import pytest
import tiktoken
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SOURCE = pathlib.Path(os.environ["MUSTER_SOURCE"])
GOLDEN = pathlib.Path(os.environ["MUSTER_GOLDEN"])
PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "muster-preprocess")
COUNT = int(os.environ.get("MUSTER_TOKENIZER_STRINGS", "20000"))
SEED = int(os.environ.get("MUSTER_TOKENIZER_SEED", "1"))

LLAMA3_SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|reserved_special_token_247|>"]


def tokenize(model, texts, *flags, kind="HuggingFaceTokenizer"):
    command = [PROGRAM, "tokenize", "--json-lines", "--tokenizer-type", kind]
    command += ["--tokenizer-model", str(model), *flags]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [[int(word) for word in line.split()] for line in done.stdout.split("\n")[:-1]]


# --- texts ---


def any_char(rng):
    while True:
        c = rng.choice([rng.randrange(0x80), rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x110000)])
        if not 0xD800 <= c < 0xE000:
            return chr(c)


WORDS = "the of and to in that don't we've I'LL x'S 2024 3.14 hello_world CamelCase naïve Straße 東京 привет שלום ١٢٣ 🙂👩‍💻".split()
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\n\n", "\u00a0", "\u3000", "\u2028", "\u180e", "\u200b", "\r", "   "]


def unicode_soup(rng):
    return "".join(any_char(rng) for _ in range(rng.randrange(1, 40)))


def words(rng):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randrange(1, 20)))


def spaces(rng):
    return "".join(rng.choice(SPACES + ["a", "1", "'", "!"]) for _ in range(rng.randrange(1, 30)))


def contractions(rng):
    return "".join(rng.choice(["'", "s", "S", "\u017f", "l", "L", "re", "VE", "d", "m", "t", " ", "a", "1"]) for _ in range(rng.randrange(1, 20)))


def special_look_alikes(rng):
    parts = LLAMA3_SPECIALS + ["<|", "|>", "<", "|", "<|begin_of", "_text|>", "<|reserved_special_token_24", "<<|eot_id|>>", " ", "x"]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 12)))


def repeats(rng):
    return rng.choice(["a", "ab", " ", "\n", "é", "1", "=", "-*", "ha", "字", "aA"]) * rng.randrange(1, 300)


def ascii_noise(rng):
    return "".join(chr(rng.randrange(0x80)) for _ in range(rng.randrange(1, 60)))


def one_script(rng):
    first = rng.choice([0x370, 0x400, 0x530, 0x590, 0x600, 0x900, 0xE00, 0x1100, 0x3040, 0x4E00, 0xAC00, 0x1F300, 0x10D40, 0x1C80, 0x31350])
    return "".join(chr(first + rng.randrange(0x60)) + rng.choice(["", "", " "]) for _ in range(rng.randrange(1, 30)))


def code(rng):
    parts = ["def f(x):\n", "    return ", "x[0]", "+=", " // note\n", "\t\t", "{}", "0xFF", "__init__", "://", "\\n", "'s'", ";\r\n", "#", "$"]
    return "".join(rng.choice(parts) for _ in range(rng.randrange(1, 20)))


GENERATORS = [unicode_soup, words, spaces, contractions, special_look_alikes, repeats, ascii_noise, one_script, code]


def random_texts(count):
    rng = random.Random(SEED)
    return ["", " ", "\n"] + [rng.choice(GENERATORS)(rng) for _ in range(count)]


# --- tokenizers ---


def llama3(folder):
    with gzip.open(GOLDEN / "tokenizers/llama3/tokenizer.json.gz") as packed, open(folder / "tokenizer.json", "wb") as out:
        shutil.copyfileobj(packed, out)


def tiny(folder):
    shutil.copy(SOURCE / "recipes/tiny_tokenizer/tokenizer.json", folder)


def train(tokenizer, folder, added=()):
    rng = random.Random(7)
    texts = [rng.choice(GENERATORS)(rng) for _ in range(3000)]
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens(list(added))
    tokenizer.save(str(folder / "tokenizer.json"))


def gpt2_style(folder):
    """ByteLevel's own pattern, a prefix space, tokens after the text, added tokens with every option."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s> </s>", special_tokens=[("<s>", 0), ("</s>", 1)])
    added = [
        AddedToken("hello", single_word=True, normalized=False),
        AddedToken("<|eot_id|>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("<|begin_of", normalized=False),
        AddedToken("Camel", normalized=True),
        AddedToken("ha", single_word=True, normalized=True),
    ]
    train(t, folder, added)


def gpt4_style(folder):
    """Another regular expression, digits one by one, no prefix space."""
    t = Tokenizer(models.BPE())
    pattern = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}]*\p{Ll}+|\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    train(t, folder)


def dropped_gaps(folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{L}+|\s?\p{N}*"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    train(t, folder)


def whole_text(folder):
    """No split at all: long words."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    train(t, folder)


@pytest.mark.parametrize("make", [llama3, tiny, gpt2_style, gpt4_style, dropped_gaps, whole_text])
def test_ids_are_those_of_the_package(make, tmp_path):
    make(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    reference.no_truncation()
    texts = random_texts(COUNT if make is llama3 else COUNT // 5)
    for special in (True, False):
        want = [e.ids for e in reference.encode_batch(texts, add_special_tokens=special)]
        got = tokenize(tmp_path, texts, *([] if special else ["--tokenizer-hf-no-include-special-tokens"]))
        assert len(got) == len(want)
        for text, w, g in zip(texts, want, got):
            assert g == w, (make.__name__, text)


def test_special_tokens_as_plain_text(tmp_path):
    llama3(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    reference.encode_special_tokens = True
    texts = random_texts(2000)
    want = [e.ids for e in reference.encode_batch(texts)]
    assert tokenize(tmp_path, texts, "--split-special-tokens") == want


def test_every_letter_and_number_splits_as_in_the_package(tmp_path):
    llama3(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    texts = ["".join(f"a{c}b{c}{c} {c}1{c}" for c in chars[i : i + 64]) for i in range(0, 0x34000, 64)]
    texts += ["".join(f"a{c}b{c}{c} {c}1{c}" for c in chars[i : i + 64]) for i in range(0xDF000, 0xE0000, 64)]
    want = [e.ids for e in reference.encode_batch(texts)]
    assert tokenize(tmp_path, texts) == want


# --- tiktoken ---

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
    texts = random_texts(COUNT // 5) + ["<s>a</s> <SPECIAL_7><SPECIAL_999><SPECIAL_1000><SPECIAL_1", "<mask", "<<unk>>"]
    flags = ["--vocab-size", str(len(entries) + 1000), "--tiktoken-pattern", pattern]
    got = tokenize(tmp_path / "vocab.json", texts, *flags, kind="TikTokenizer")
    for text, ids in zip(texts, got, strict=True):
        assert ids == reference.encode(text, allowed_special="all"), text


def test_llama3_as_tiktoken_and_as_hugging_face_file_are_equal(tmp_path):
    """The same vocabulary written in tiktoken's form."""
    llama3(tmp_path)
    vocab = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    alphabet = {c: b for b, c in enumerate(byte_characters())}
    tokens = sorted((i, bytes(alphabet[c] for c in token)) for token, i in vocab.items())
    lines = "".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in tokens)
    (tmp_path / "tokenizer.model").write_text(lines)
    texts = random_texts(COUNT // 5)
    got = tokenize(tmp_path / "tokenizer.model", texts, kind="TikTokenizer")
    assert got == tokenize(tmp_path, texts)
    reference = tiktoken.Encoding("llama3", pat_str=LLAMA3_PATTERN, mergeable_ranks={token: i for i, token in tokens}, special_tokens={})
    plain = tokenize(tmp_path, texts, "--split-special-tokens", "--tokenizer-hf-no-include-special-tokens")
    for text, ids in zip(texts, plain, strict=True):
        assert ids == reference.encode_ordinary(text), text


def byte_characters():
    """GPT-2's character for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


def test_gpt2_files(tmp_path):
    """vocab.json and merges.txt, as Hugging Face reads them."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(t, tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    vocab = content["model"]["vocab"]
    vocab["<|endoftext|>"] = len(vocab)
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    merges = "".join(f"{left} {right}\n" for left, right in content["model"]["merges"])
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + merges)
    reference = Tokenizer(models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.add_special_tokens(["<|endoftext|>"])
    texts = random_texts(COUNT // 10) + ["a<|endoftext|>b", "<|endoftext|", "# comment"]
    flags = ["--vocab-file", str(tmp_path / "vocab.json"), "--merge-file", str(tmp_path / "merges.txt")]
    got = tokenize("unused", texts, *flags, kind="GPT2BPETokenizer")
    assert got == [e.ids for e in reference.encode_batch(texts)]
    with_eod = tokenize("unused", ["x"], *flags, "--append-eod", kind="GPT2BPETokenizer")
    assert with_eod[0][-1] == vocab["<|endoftext|>"]
