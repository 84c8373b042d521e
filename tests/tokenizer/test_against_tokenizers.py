"""Ids equal to the `tokenizers` package on random texts, for tokenizers of many shapes."""

import functools
import json
import random
import shutil

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from harness import COUNT, GENERATORS, SOURCE, assert_equal, detokenize, llama3, random_texts, tokenize

NO_SPECIAL = "--tokenizer-hf-no-include-special-tokens"


def tiny(folder):
    shutil.copy(SOURCE / "recipes/tiny_tokenizer/tokenizer.json", folder)


def trained(tokenizer, specials, **options):
    """The tokenizer as JSON after training on the kinds of texts that the tests use."""
    rng = random.Random(7)
    texts = [rng.choice(GENERATORS)(rng) for _ in range(2000)]
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=[*specials], show_progress=False, **options)
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())


@functools.cache
def byte_model():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return trained(t, ["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())["model"]


def save_bytes(tokenizer, folder, added=()):
    """With the vocabulary that all tokenizers over bytes share here."""
    content = json.loads(tokenizer.to_str()) | {"model": byte_model()}
    whole = Tokenizer.from_str(json.dumps(content))
    whole.decoder = decoders.ByteLevel()
    whole.add_special_tokens(["<s>", "</s>"])
    whole.add_tokens(list(added))
    whole.save(str(folder / "tokenizer.json"))


# --- vocabularies of bytes ---


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
    save_bytes(t, folder, added)


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
    save_bytes(t, folder)


def qwen_style(folder):
    """NFC before everything; an added token that is looked for in normalized text."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFC()
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    save_bytes(t, folder, [AddedToken("a\u0301", normalized=True), AddedToken("<|eot_id|>", special=True)])


def deepseek_style(folder):
    """Several splits one after the other, punctuation and symbols as classes."""
    t = Tokenizer(models.BPE())
    pattern = (
        r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
        r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
    )
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            pre_tokenizers.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    save_bytes(t, folder)


def classes(folder):
    """Negated classes in and outside of brackets, scripts, digits, a lookbehind, atomic and possessive parts."""
    t = Tokenizer(models.BPE())
    pattern = r"[\P{Lu}\p{Nd}]{2}|\p{Han}++|[^\S\n]+|(?<=\d)\D|(?>\p{^M}\p{M}+)|\S?+"
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    save_bytes(t, folder)


def dropped_gaps(folder):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\p{L}+|\s?\p{N}*"), "removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    save_bytes(t, folder)


def whole_text(folder):
    """No split at all: long words."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    save_bytes(t, folder)


def nfkd_and_strip(folder):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Strip(), normalizers.Replace("a", "bb")])
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    save_bytes(t, folder)


def nfkc(folder):
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.NFKC()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    save_bytes(t, folder)


# --- vocabularies of characters ---

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
FALLBACK_DECODER = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def save_characters(tokenizer, folder, specials=("<unk>", "<s>", "</s>"), added=()):
    tokenizer.decoder = FALLBACK_DECODER
    content = trained(tokenizer, specials, initial_alphabet=["▁"], limit_alphabet=200)
    # Byte tokens are tokens of the model only, as in Llama 2's file.
    content["added_tokens"] = [t for t in content["added_tokens"] if t["content"] not in BYTES]
    whole = Tokenizer.from_str(json.dumps(content))
    whole.add_tokens(list(added))
    whole.save(str(folder / "tokenizer.json"))


def llama2_style(folder):
    """Spaces become ▁ in the normalizer, nothing splits, unknown characters become bytes."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    save_characters(t, folder, ["<unk>", "<s>", "</s>", *BYTES])


def mistral_style(folder):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    save_characters(t, folder, ["<unk>", "<s>", "</s>", *BYTES], added=[AddedToken("привет", normalized=True)])


def metaspace_split(folder):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=True)
    save_characters(t, folder)


def metaspace_after_digits(folder):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.Metaspace(replacement="_", prepend_scheme="first", split=True)]
    )
    save_characters(t, folder)


def some_bytes(folder):
    """Only some byte tokens: what can't fall back is unknown."""
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never", split=False)
    save_characters(t, folder, ["<unk>", *BYTES[:0xE0]])


def no_unknown(folder):
    """Characters that are no tokens vanish."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Replace(" ", "▁")
    save_characters(t, folder, ["<s>"])


STYLES = [
    tiny,
    gpt2_style,
    gpt4_style,
    qwen_style,
    deepseek_style,
    classes,
    dropped_gaps,
    whole_text,
    nfkd_and_strip,
    nfkc,
    llama2_style,
    mistral_style,
    metaspace_split,
    metaspace_after_digits,
    some_bytes,
    no_unknown,
]


@pytest.mark.parametrize("make", STYLES)
def test_ids_are_those_of_the_package(make, tmp_path):
    make(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = random_texts(COUNT // 25, seed=STYLES.index(make))
    for special in (True, False):
        want = [e.ids for e in reference.encode_batch(texts, add_special_tokens=special)]
        assert_equal(texts, tokenize(tmp_path, texts, *([] if special else [NO_SPECIAL])), want)


def test_llama3_on_all_strings(tmp_path):
    llama3(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    texts = random_texts(COUNT)
    want = [e.ids for e in reference.encode_batch_fast(texts, add_special_tokens=True)]
    got = tokenize(tmp_path, texts)
    assert_equal(texts, got, want)
    few = slice(0, COUNT // 10)
    assert detokenize(tmp_path, [ids[1:] for ids in got[few]]) == texts[few]


@pytest.mark.parametrize("make", [whole_text, llama2_style, llama3])
def test_words_of_many_symbols(make, tmp_path):
    """So many that what merges next is looked for several times."""
    make(tmp_path)
    package = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    rng = random.Random(21)
    texts = ["".join(rng.choices(letters, k=150_000)) for letters in ("abcdefghijklmnopqrstuvwxyz", "ACGT", "ab", "éa", "a")]
    texts += ["ha" * 60_000 + "b", "".join(rng.choice(["the", "re", "ing", "ā"]) for _ in range(40_000))]
    texts.append("x".join(text.strip() for text in random_texts(6000, seed=22)))
    got = tokenize(tmp_path, texts, NO_SPECIAL)
    assert_equal(texts, got, [package.encode(text, add_special_tokens=False).ids for text in texts])


def test_special_tokens_as_plain_text(tmp_path):
    llama3(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    reference.encode_special_tokens = True
    reference.add_tokens([AddedToken("<|", normalized=False), AddedToken("begin", normalized=False)])
    reference.save(str(tmp_path / "tokenizer.json"))
    texts = random_texts(2000)
    want = [e.ids for e in reference.encode_batch(texts)]
    assert_equal(texts, tokenize(tmp_path, texts, "--split-special-tokens"), want)


@pytest.mark.parametrize("invert", [False, True])
@pytest.mark.parametrize("behavior", ["isolated", "removed", "merged_with_previous", "merged_with_next", "contiguous"])
def test_split_behaviours(behavior, invert, tmp_path):
    for pattern in (Regex(r"\p{N}|--"), " ", "-*", Regex(r"\s+|'")):
        t = Tokenizer(models.BPE())
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(pattern, behavior, invert), pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)]
        )
        save_bytes(t, tmp_path)
        reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        texts = random_texts(500)
        assert_equal(texts, tokenize(tmp_path, texts), [e.ids for e in reference.encode_batch(texts)])


def test_every_letter_and_number_splits_as_in_the_package(tmp_path):
    llama3(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    parts = [chars[i : i + 64] for i in [*range(0, 0x34000, 64), *range(0xDF000, 0xE0000, 64)]]
    texts = ["".join(f"a{c} {c}1" for c in part) for part in parts]
    want = [e.ids for e in reference.encode_batch_fast(texts)]
    assert_equal(texts, tokenize(tmp_path, texts), want)


def test_every_character_ends_a_word_as_in_the_package(tmp_path):
    gpt2_style(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    chars = [chr(c) for c in [*range(0xD800), *range(0xE000, 0x34000), *range(0xE0000, 0xE1000)]]
    texts = ["".join(f" {c}hello {c} hello{c}" for c in chars[i : i + 64]) for i in range(0, len(chars), 64)]
    assert_equal(texts, tokenize(tmp_path, texts), [e.ids for e in reference.encode_batch_fast(texts)])


def metaspace_decoder(folder):
    """Markers of the first token vanish."""
    mistral_style(folder)
    whole = Tokenizer.from_file(str(folder / "tokenizer.json"))
    whole.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="first")
    whole.save(str(folder / "tokenizer.json"))


def normalized_tokens(folder):
    """Tokens that are looked for in normalized text, beside byte tokens of the same looks."""
    llama2_style(folder)
    whole = Tokenizer.from_file(str(folder / "tokenizer.json"))
    whole.add_tokens([AddedToken("<extra>", normalized=True), AddedToken("x ▁y", normalized=True), AddedToken("<0x4g>", normalized=False)])
    whole.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("make", [gpt2_style, qwen_style, llama2_style, mistral_style, metaspace_decoder, normalized_tokens])
def test_any_ids_become_the_text_of_the_package(make, tmp_path):
    make(tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    rng = random.Random(3)
    size = reference.get_vocab_size()
    added = [i for i in range(size) if i < 300 or i > size - 8]  # bytes and added tokens
    ids = [[i] for i in range(size)]
    ids += [[rng.choice([rng.randrange(size), rng.choice(added)]) for _ in range(rng.randrange(1, 9))] for _ in range(5000)]
    want = [reference.decode(i, skip_special_tokens=False) for i in ids]
    assert_equal(ids, detokenize(tmp_path, ids), want)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_every_character_is_normalized_as_in_the_package(form, tmp_path):
    t = Tokenizer(models.BPE())
    t.normalizer = getattr(normalizers, form)()
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    save_bytes(t, tmp_path)
    reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    changed = [c for c in range(0x300, 0x33480) if not 0xD800 <= c < 0xE000 and not 0x3400 <= c < 0xA000]
    texts = ["".join(f"a{chr(c)}\u0301\u0316{chr(c)}" for c in changed[i : i + 64]) for i in range(0, len(changed), 64)]
    assert_equal(texts, tokenize(tmp_path, texts), [e.ids for e in reference.encode_batch_fast(texts)])


def test_texts_come_back(tmp_path):
    """What the decoders of character vocabularies leave of a text."""
    for make in (llama2_style, mistral_style):
        make(tmp_path)
        reference = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
        ids = [e.ids for e in reference.encode_batch(random_texts(1000), add_special_tokens=False)]
        want = [reference.decode(i, skip_special_tokens=False) for i in ids]
        assert_equal(ids, detokenize(tmp_path, ids), want)


def test_gpt2_files(tmp_path):
    """vocab.json and merges.txt, as Hugging Face reads them."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    save_bytes(t, tmp_path)
    content = json.loads((tmp_path / "tokenizer.json").read_text())
    vocab = content["model"]["vocab"]
    vocab["<|endoftext|>"] = len(vocab)
    (tmp_path / "vocab.json").write_text(json.dumps(vocab))
    merges = "".join(f"{left} {right}\n" for left, right in content["model"]["merges"])
    (tmp_path / "merges.txt").write_text("#version: 0.2\n" + merges)
    reference = Tokenizer(models.BPE.from_file(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")))
    reference.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    reference.add_special_tokens(["<|endoftext|>"])
    texts = random_texts(2000) + ["a<|endoftext|>b", "<|endoftext|", "# comment"]
    flags = ["--vocab-file", str(tmp_path / "vocab.json"), "--merge-file", str(tmp_path / "merges.txt")]
    got = tokenize("unused", texts, *flags, kind="GPT2BPETokenizer")
    assert_equal(texts, got, [e.ids for e in reference.encode_batch(texts)])
    with_eod = tokenize("unused", ["x"], *flags, "--append-eod", kind="GPT2BPETokenizer")
    assert with_eod[0][-1] == vocab["<|endoftext|>"]
