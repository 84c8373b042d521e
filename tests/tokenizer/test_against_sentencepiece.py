"""Ids equal to the `sentencepiece` package, used as Megatron's SentencePieceTokenizer uses it."""

import io
import random
import re

import pytest
import sentencepiece

from harness import COUNT, GENERATORS, GOLDEN, assert_equal, detokenize, random_texts, tokenize

KINDS = ["SentencePieceTokenizer", "GPTSentencePieceTokenizer", "Llama2Tokenizer"]
LEGACY = "--tokenizer-sentencepiece-legacy"
KEEP_SPACES = "--no-tokenizer-sentencepiece-ignore-extra-whitespaces"


def no_zero(text):
    """The trainer stops at a zero byte; the tokenizers do not."""
    return text.replace("\0", "") or "x"


def train(path, **options):
    rng = random.Random(3)
    texts = [no_zero(rng.choice(GENERATORS)(rng)).replace("\n", " ") for _ in range(3000)]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_writer=model, hard_vocab_limit=False, minloglevel=2, num_threads=1, **options
    )
    path.write_bytes(model.getvalue())


MODELS = {
    "unigram": {"model_type": "unigram", "vocab_size": 4200, "pad_id": 3},
    "llama2": {
        "model_type": "bpe",
        "vocab_size": 2600,
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_digits": True,
        "character_coverage": 0.98,
        "user_defined_symbols": ["hello_world", "<|eot_id|>"],
    },
    "no_prefix": {"model_type": "bpe", "vocab_size": 2400, "add_dummy_prefix": False, "eos_id": -1, "character_coverage": 0.98},
}


def load(path):
    processor = sentencepiece.SentencePieceProcessor()
    processor.Load(str(path))
    return processor


def is_tie(reference, got, want):
    """Versions of the library round sums of scores differently: both ways to cut the text are the best."""
    text = "".join(map(reference.id_to_piece, got))
    sums = [sum(map(reference.get_score, ids)) for ids in (got, want)]
    # Each of the n sums in single precision is off by at most half a unit in the last place.
    bound = len(want) * abs(sums[1]) * 2.0**-23
    return text == "".join(map(reference.id_to_piece, want)) and abs(sums[0] - sums[1]) <= bound


@pytest.mark.parametrize("name", MODELS)
def test_ids_are_those_of_the_package(name, tmp_path):
    path = tmp_path / "tokenizer.model"
    train(path, **MODELS[name])
    reference = load(path)
    texts = random_texts(COUNT // 10, seed=5)
    got = tokenize(path, texts, kind=KINDS[len(name) % 3])
    want = reference.encode(texts)
    if name == "unigram":
        want = [g if is_tie(reference, g, w) else w for g, w in zip(got, want, strict=True)]
    assert_equal(texts, got, want)
    some = [ids for ids in got if ids][:2000]
    assert_equal(some, detokenize(path, some, kind="Llama2Tokenizer"), reference.decode(some))


def test_the_golden_model(tmp_path):
    path = GOLDEN / "megatron/data/spm2000.model"
    reference = load(path)
    texts = random_texts(COUNT // 10, seed=6)
    assert_equal(texts, tokenize(path, texts, kind="SentencePieceTokenizer"), reference.encode(texts))
    assert tokenize(path, ["x"], "--append-eod", kind="SentencePieceTokenizer")[0][-1] == reference.eos_id()


@pytest.mark.parametrize("keep_spaces", [False, True])
@pytest.mark.parametrize("name", ["llama2", "no_prefix"])
def test_long_texts(name, keep_spaces, tmp_path):
    """They are encoded in parts, where the model lets them be cut."""
    path = tmp_path / "tokenizer.model"
    train(path, **MODELS[name])
    reference = load(path)
    rng = random.Random(12)
    texts = [rng.choice([" ", "", "  "]).join(random_texts(rng.randrange(100, 1500), seed=i)) for i in range(30)]
    texts += ["a " * 4100, "a" * 9000 + " b" * 3000, "b  c " * 3000, " x" * 5000 + "\n", "é e " * 5000]
    got = tokenize(path, texts, *([KEEP_SPACES] if keep_spaces else []), kind="Llama2Tokenizer")
    assert_equal(texts, got, [megatron(reference, text, [], keep_spaces) for text in texts])


def megatron(reference, text, specials, keep_spaces):
    """Megatron's _text_to_ids."""
    ids_of, size = {}, reference.get_piece_size()
    for token in specials:
        if reference.piece_to_id(token) != reference.unk_id():
            ids_of[token] = reference.piece_to_id(token)
        elif token not in ids_of:
            ids_of[token] = size
            size += 1
    separator = reference.piece_to_id("▁")
    mark = "☯"
    keep = keep_spaces and reference.encode_as_pieces("x  y") == reference.encode_as_pieces("x y")
    if keep:
        text = re.sub(r"(?<= )(?= )|^ | $", f" {mark} ", text).rstrip()
    ids, at = [], 0
    while True:
        places = {token: text.index(token, at) for token in ids_of if token in text[at:]}
        if not places:
            break
        token = min(places, key=places.get)
        plain = reference.encode(text[at : places[token]])
        if ids and ids[-1] in ids_of.values() and plain and plain[0] == separator:
            plain.pop(0)
        ids += plain + [ids_of[token]]
        at = places[token] + len(token)
    if not keep:
        return ids + reference.encode(text[at:])
    for part in text[at:].split(mark):
        if part:
            ids += reference.encode(part + mark)[:-1]
    return ids


SPECIAL_TOKENS = ["<|eot_id|>", "<s>", "<|", "[INST]", "[INST] ", "the", "<|"]


@pytest.mark.parametrize("keep_spaces", [False, True])
@pytest.mark.parametrize("specials", [[], SPECIAL_TOKENS])
def test_added_special_tokens_and_kept_spaces(specials, keep_spaces):
    path = GOLDEN / "megatron/data/spm2000.model"
    reference = load(path)
    rng = random.Random(9)
    parts = SPECIAL_TOKENS + [" ", "  ", "who", "\n", "a b", "☯", "[INST]  who", "é"]
    texts = random_texts(2000) + ["".join(rng.choices(parts, k=rng.randrange(1, 12))) for _ in range(2000)]
    flags = [LEGACY, "--tokenizer-special-tokens", *specials] if specials else []
    flags += [KEEP_SPACES] if keep_spaces else []
    got = tokenize(path, texts, *flags, kind="SentencePieceTokenizer")
    assert_equal(texts, got, [megatron(reference, text, specials, keep_spaces) for text in texts])
