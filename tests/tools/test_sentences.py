"""--split-sentences against NLTK's own Punkt, with a model that it learns here."""

import gzip
import json
import random

import pytest
from nltk.tokenize.punkt import PunktLanguageVars, PunktSentenceTokenizer, PunktTrainer
from preprocess_program import GOLDEN, TINY, good, read_documents, run, tokenize

PLAIN = [*TINY, "--tokenizer-hf-no-include-special-tokens"]


class KeepNewlines(PunktLanguageVars):
    """As Megatron's CustomLanguageVars."""

    _period_context_fmt = r"""
        \S*
        %(SentEndChars)s
        \s*
        (?=(?P<after_tok>
            %(NonWord)s
            |
            (?P<next_tok>\S+)
        ))"""


@pytest.fixture(scope="module")
def texts():
    with gzip.open(GOLDEN / "megatron/data/corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        read = [json.loads(line)["text"] for line in lines]
    return [text for text in read if isinstance(text, str)]


@pytest.fixture(scope="module")
def model(texts, tmp_path_factory):
    trainer = PunktTrainer()
    trainer.train("\n".join(texts), finalize=False)
    # Words that make every rule meet.
    trainer.train("Mr. Smith met Dr. J. S. Bach at 5. The U.S. army of e.g. Prof. Brown. He left. The end. " * 20, finalize=True)
    params = trainer.get_params()
    folder = tmp_path_factory.mktemp("nltk")
    english = folder / "tokenizers/punkt_tab/english"
    english.mkdir(parents=True)
    (english / "abbrev_types.txt").write_text("\n".join(params.abbrev_types), encoding="utf-8")
    (english / "sent_starters.txt").write_text("\n".join(params.sent_starters), encoding="utf-8")
    (english / "collocations.tab").write_text("\n".join("\t".join(pair) for pair in params.collocations), encoding="utf-8")
    contexts = [f"{word}\t{bits}" for word, bits in params.ortho_context.items() if "\n" not in word and "\t" not in word]
    (english / "ortho_context.tab").write_text("\n".join(contexts), encoding="utf-8")
    assert len(params.abbrev_types) > 20 and len(params.collocations) > 3 and len(params.sent_starters) > 5
    return folder, params


def nltk_splitter(params, keep_newlines):
    return PunktSentenceTokenizer(train_text=params, lang_vars=KeepNewlines() if keep_newlines else None)


def check(texts, model, tmp_path, keep_newlines):
    """One run over all of `texts`, sentence by sentence."""
    folder, params = model
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    flags = ["--keep-newlines"] if keep_newlines else []
    good(
        "--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *PLAIN, "--split-sentences", *flags,
        env={"NLTK_DATA": str(folder)},
    )  # fmt: skip
    splitter = nltk_splitter(params, keep_newlines)
    want = [[s for at in range(0, len(text), 1_000_000) for s in splitter.tokenize(text[at : at + 1_000_000])] for text in texts]
    ids = iter(tokenize([s for sentences in want for s in sentences], *PLAIN))
    expected = [[row for row in (next(ids) for _ in sentences) if row] for sentences in want]
    got = read_documents(tmp_path / "out_text_sentence")
    assert len(got) == len(expected)
    for text, a, b in zip(texts, got, expected):
        assert a == b, repr(text)
    return want


@pytest.mark.parametrize("keep_newlines", [False, True])
def test_sentences_are_nltks(texts, model, tmp_path, keep_newlines):
    want = check(texts[::3], model, tmp_path, keep_newlines)
    assert sum(map(len, want)) > 2 * len(want)


PIECES = [
    ".", "!", "?", "...", "..", ". . .", "?!", "--", "-", ",", ";", ":", '"', "'", ")", "(", "]", "}", "{", "`", "@", "*", "«", "»", "“", "”", "’",
    " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u2003", "\x1f", "\u3000", "The", "the", "He", "he", "Mr", "mr", "Dr", "J", "S", "Bach", "e.g", "U.S",
    "Smith", "army", "5", "1,000.5", "-3", "٣", "Σ", "ΟΔΟΣ", "İ", "é", "É", "日本", "_", "x-Dr", "and", "left", "Prof", "ⓐ", "ª", "ǅ", "\u0301", "🙂", "a\u200db",
]  # fmt: skip


@pytest.mark.parametrize("keep_newlines", [False, True])
def test_random_texts_are_split_as_by_nltk(model, tmp_path, keep_newlines):
    rng = random.Random(5)
    texts = []
    for _ in range(2000):
        words = [rng.choice(PIECES) for _ in range(rng.randrange(1, 25))]
        texts.append(rng.choice(["", " ", " "]).join(words))
    check(texts, model, tmp_path, keep_newlines)


def test_long_texts_are_cut_at_a_million_characters(model, tmp_path):
    sentence = "A sentence of many words é, " + "and more " * 30 + "at its end. "
    check([sentence * (1_200_000 // len(sentence)), "x" * 1_000_001, " " * 1_000_500, ""], model, tmp_path, False)


def test_what_can_not_be_split_is_refused(model, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": ["a. b.", "c"]}\n')
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *PLAIN, "--split-sentences"]
    done = run(*args, env={"NLTK_DATA": str(model[0])})
    assert done.returncode == 65 and "in.jsonl:1:1: --split-sentences: a list of texts" in done.stderr
    done = run(*args, "--lang", "dutch", env={"NLTK_DATA": str(model[0])})
    assert done.returncode == 65 and "nltk.downloader punkt_tab" in done.stderr and "punkt_tab/dutch" in done.stderr
    done = run(*args, "--lang", "../english", env={"NLTK_DATA": str(model[0])})
    assert done.returncode == 65
    assert [p.name for p in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_damaged_model_is_named(model, tmp_path):
    english = tmp_path / "tokenizers/punkt_tab/english"
    english.mkdir(parents=True)
    for name in ("abbrev_types.txt", "sent_starters.txt", "collocations.tab"):
        (english / name).write_text("")
    (english / "ortho_context.tab").write_text("a\t2\nb\tx\n")
    (tmp_path / "in.jsonl").write_text('{"text": "a"}\n')
    done = run(
        "--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *PLAIN, "--split-sentences",
        env={"NLTK_DATA": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 65 and "ortho_context.tab:2: expected a word, a tab and a whole number" in done.stderr
