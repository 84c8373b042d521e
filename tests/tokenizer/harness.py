"""What the tokenizer tests share: the program, and random texts of many kinds.

MUSTER_TOKENIZER_STRINGS sets how many texts the largest tests use (default 100,000), MUSTER_TOKENIZER_SEED the seed.
"""

import functools
import gzip
import json
import os
import pathlib
import random
import shutil
import subprocess

SOURCE = pathlib.Path(os.environ["MUSTER_SOURCE"])
GOLDEN = pathlib.Path(os.environ["MUSTER_GOLDEN"])
PROGRAM = os.path.join(os.environ["MUSTER_BIN"], "muster-preprocess")
COUNT = int(os.environ.get("MUSTER_TOKENIZER_STRINGS", "100000"))
SEED = int(os.environ.get("MUSTER_TOKENIZER_SEED", "1"))


def run(command, lines):
    done = subprocess.run([PROGRAM, *command], input="".join(lines), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def tokenize(model, texts, *flags, kind="HuggingFaceTokenizer"):
    command = ["tokenize", "--json-lines", "--tokenizer-type", kind, "--tokenizer-model", str(model), *flags]
    return [[int(word) for word in line.split()] for line in run(command, (json.dumps(t) + "\n" for t in texts))]


def detokenize(model, ids, *flags, kind="HuggingFaceTokenizer"):
    command = ["detokenize", "--json-lines", "--tokenizer-type", kind, "--tokenizer-model", str(model), *flags]
    return [json.loads(line) for line in run(command, (" ".join(map(str, i)) + "\n" for i in ids))]


def assert_equal(texts, got, want):
    assert len(got) == len(texts)
    for text, g, w in zip(texts, got, want, strict=True):
        assert g == w, (text, g, w)


def llama3(folder):
    with gzip.open(GOLDEN / "tokenizers/llama3/tokenizer.json.gz") as packed, open(folder / "tokenizer.json", "wb") as out:
        shutil.copyfileobj(packed, out)


def byte_characters():
    """GPT-2's character for each byte."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    return [chr(b) if b in printable else chr(256 + others.index(b)) for b in range(256)]


# --- texts ---

SPECIALS = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", "<|reserved_special_token_247|>", "<s>", "</s>", "<unk>", "<0x0A>"]
WORDS = "the of and to in that don't we've I'LL x'S 2024 3.14 hello_world CamelCase naïve Straße 東京 привет שלום ١٢٣ 🙂👩‍💻 ▁x".split()
SPACES = [" ", "  ", "\n", "\r\n", "\t", "\n\n", "\u00a0", "\u3000", "\u2028", "\u180e", "\u200b", "\r", "   ", "\u2581"]
CODE = ["def f(x):\n", "    return ", "x[0]", "+=", " // note\n", "\t\t", "{}", "0xFF", "__init__", "://", "\\n", "'s'", ";\r\n", "#", "$"]
MARKS = [*map(chr, range(0x300, 0x320)), "\u05b0", "\u0345", "\u3099", "\u094d", "\u0334", "\u1161", "\u11a8", "\u0898", "\U0001e4ec"]
BASES = [*"aeioAEIOsk", "\u1100", "\uac00", "か", "\u09c7", "\u212b", "\ufb01", "\u00e9", "\u01d5", "\u0f71", "\U00011935", "½", "Ⅷ", "㋿", "ｶ"]
SCRIPTS = [0x370, 0x400, 0x530, 0x590, 0x600, 0x900, 0xE00, 0x1100, 0x3040, 0x4E00, 0xAC00, 0x1F300, 0x10D40, 0x1C80, 0x31350]


def any_char(rng):
    while True:
        c = rng.choice([rng.randrange(0x80), rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x110000)])
        if not 0xD800 <= c < 0xE000:
            return chr(c)


def pick(rng, parts, most):
    return "".join(rng.choices(parts, k=rng.randrange(1, most)))


def unicode_soup(rng):
    return "".join(any_char(rng) for _ in range(rng.randrange(1, 30)))


def words(rng):
    return "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randrange(1, 15)))


def spaces(rng):
    return pick(rng, SPACES + ["a", "1", "'", "!"], 30)


def contractions(rng):
    return pick(rng, ["'", "s", "S", "\u017f", "l", "L", "re", "VE", "d", "m", "t", " ", "a", "1"], 20)


def special_look_alikes(rng):
    return pick(rng, SPECIALS + ["<|", "|>", "<", "|", "<|begin_of", "_text|>", "<|reserved_special_token_24", "<<|eot_id|>>", " ", "x"], 12)


def repeats(rng):
    return rng.choice(["a", "ab", " ", "\n", "é", "1", "=", "-*", "ha", "字", "aA", "🙂", "\u0301", "▁"]) * rng.randrange(1, 200)


def ascii_noise(rng):
    return pick(rng, [chr(c) for c in range(0x80)], 60)


def digits(rng):
    return pick(rng, [*"0123456789", ".", ",", " ", "\u0661", "²", "Ⅷ", "１"], 25)


def one_script(rng):
    first = rng.choice(SCRIPTS)
    return "".join(chr(first + rng.randrange(0x60)) + rng.choice(["", "", " "]) for _ in range(rng.randrange(1, 25)))


def mixed_scripts(rng):
    return "".join(chr(rng.choice(SCRIPTS) + rng.randrange(0x60)) for _ in range(rng.randrange(1, 25)))


def code(rng):
    return pick(rng, CODE, 20)


def combining(rng):
    return pick(rng, BASES + MARKS, 20)


def touching_words(rng):
    """What does and does not count as part of a word, beside the tokens that gpt2_style looks for."""
    return pick(rng, ["hello", "hello", "ha", "½", "²", "Ⅷ", "\u0661", "\u0301", "_", "\u203f", "\u200d", "ⓐ", "\U0001e4ec", " ", "-", "z", "字"], 12)


GENERATORS = [
    touching_words,
    unicode_soup,
    words,
    spaces,
    contractions,
    special_look_alikes,
    repeats,
    ascii_noise,
    digits,
    one_script,
    mixed_scripts,
    code,
    combining,
]


@functools.cache
def random_texts(count, seed=SEED):
    rng = random.Random(seed)
    return ["", " ", "\n"] + [rng.choice(GENERATORS)(rng) for _ in range(count)]
