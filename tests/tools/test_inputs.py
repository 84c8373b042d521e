"""What muster-preprocess reads: several files, globs, stdin, gzip, zstd, plain text, partitions, bad lines."""

import gzip
import json
import os
import random
import shutil
import subprocess

import pytest
from preprocess_program import GOLDEN, PROGRAM, TINY, files_of, good, leftovers, read_documents, run, tokenize

LINES = [json.dumps({"text": f"Document {i}: " + "word " * (i % 40), "n": i}) for i in range(500)]


@pytest.fixture()
def parts(tmp_path):
    """Three files and the output of all of them."""
    for i, cut in enumerate([(0, 100), (100, 350), (350, 500)]):
        (tmp_path / f"part{i}.jsonl").write_text("\n".join(LINES[cut[0] : cut[1]]))
    (tmp_path / "all.jsonl").write_text("\n".join(LINES) + "\n")
    good("--input", tmp_path / "all.jsonl", "--output-prefix", tmp_path / "all", *TINY, "--append-eod")
    return files_of(tmp_path / "all_text_document")


def encode(tmp_path, *inputs, **kwargs):
    good("--output-prefix", tmp_path / "got", *TINY, "--append-eod", "--input", *inputs, **kwargs)
    return files_of(tmp_path / "got_text_document")


def zstd(data):
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


def test_several_files_and_globs(parts, tmp_path):
    assert encode(tmp_path, *(tmp_path / f"part{i}.jsonl" for i in range(3))) == parts
    assert encode(tmp_path, tmp_path / "part*.jsonl") == parts
    assert encode(tmp_path, tmp_path / "part[01].jsonl", tmp_path / "part?.jsonl") != parts
    assert encode(tmp_path, "-", tmp_path / "part1.jsonl", tmp_path / "part2.jsonl", input="\n".join(LINES[:100])) == parts
    # A name with such characters is a file first.
    (tmp_path / "part[0].jsonl").write_text("\n".join(LINES))
    assert encode(tmp_path, tmp_path / "part[0].jsonl") == parts


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd program to pack with")
def test_packed_files_are_known_by_their_bytes(parts, tmp_path):
    text = ("\n".join(LINES) + "\n").encode()
    half = len(text) // 2
    packed = {
        "gzip": gzip.compress(text),
        "members": gzip.compress(text[:half]) + gzip.compress(b"") + gzip.compress(text[half:]) + bytes(100),
        "zstd": zstd(text),
        "frames": zstd(text[:half]) + b"\x5a\x2a\x4d\x18\x04\0\0\0skip" + zstd(text[half:]),
    }
    for name, data in packed.items():
        (tmp_path / name).write_bytes(data)
        assert encode(tmp_path, tmp_path / name) == parts, name
        with open(tmp_path / name, "rb") as stdin:
            done = subprocess.run(
                [PROGRAM, "--input", "-", "--output-prefix", tmp_path / "s", *TINY, "--append-eod"], stdin=stdin, capture_output=True, check=False
            )
        assert done.returncode == 0 and files_of(tmp_path / "s_text_document") == parts, name


@pytest.mark.skipif(shutil.which("zstd") is None, reason="no zstd program to pack with")
@pytest.mark.parametrize("form", ["gzip", "zstd"])
def test_damaged_packed_files(form, tmp_path):
    data = (gzip.compress if form == "gzip" else zstd)(os.urandom(3000).hex().encode())
    (tmp_path / "cut").write_bytes(data[:1000])
    (tmp_path / "flipped").write_bytes(data[:1500] + bytes([data[1500] ^ 0xFF]) + data[1501:])
    (tmp_path / "tail").write_bytes(data + b"garbage")
    for name, message in [("cut", f"cut, offset 1000: the {form} file is truncated"), ("flipped", f"the {form} file is"), ("tail", "tail, offset ")]:
        done = run("--input", tmp_path / name, "--input-format", "file", "--output-prefix", tmp_path / "out", *TINY)
        assert done.returncode == 65 and message in done.stderr, (name, done.stderr)
        assert leftovers(tmp_path, "out") == []


def test_other_packed_forms_are_refused_by_name(tmp_path):
    for head, name in [(b"BZh91AY", "bzip2"), (b"\xfd7zXZ\0\0", "xz"), (b"PK\3\4abc", "zip"), (b"\x04\x22\x4d\x18a", "lz4")]:
        (tmp_path / "in").write_bytes(head)
        done = run("--input", tmp_path / "in", "--output-prefix", tmp_path / "out", *TINY)
        assert done.returncode == 65 and f"is packed with {name}, which is not read here; pipe it: " in done.stderr
    done = run("--input", tmp_path / "x*.jsonl", "--output-prefix", tmp_path / "out", *TINY)
    assert done.returncode == 65 and "no file matches" in done.stderr


def test_plain_text(tmp_path):
    text = "First block,\nline two.\r\n\r\n\n\nSecond.\n\nThird\nblock"
    (tmp_path / "x.txt").write_bytes(text.encode())
    (tmp_path / "y.txt").write_bytes(b"\n another \r\nfile\n")
    forms = {
        "text": ["First block,\nline two.", "Second.", "Third\nblock", " another \nfile"],
        "lines": ["First block,", "line two.", "Second.", "Third", "block", " another ", "file"],
        "file": [text, "\n another \r\nfile\n"],
    }
    for form, documents in forms.items():
        good("--input", tmp_path / "x.txt", tmp_path / "y.txt", "--input-format", form, "--output-prefix", tmp_path / form, *TINY)
        assert read_documents(tmp_path / f"{form}_text_document") == [[ids] for ids in tokenize(documents, *TINY)], form


def test_partitions_have_megatrons_files_and_order(parts, tmp_path):
    lines = LINES[:7]
    (tmp_path / "a.jsonl").write_text("\n".join(lines[:4]))
    (tmp_path / "b.jsonl").write_text("\n".join(lines[4:]))
    for flags, rows in [
        ([], [[0, 3, 6], [1, 4], [2, 5]]),
        (["--keep-sequential-samples"], [[0, 1, 2], [3, 4, 5], [6]]),
    ]:
        good("--input", tmp_path / "[ab].jsonl", "--output-prefix", tmp_path / "p", *TINY, "--partitions", 3, *flags)
        expected = [[[ids] for ids in tokenize([json.loads(lines[i])["text"] for i in row], *TINY)] for row in rows]
        for i in range(3):
            assert read_documents(tmp_path / f"p_{i}_text_document") == expected[i]
        assert read_documents(tmp_path / "p_text_document") == sum(expected, [])
    done = run("--input", "-", "--output-prefix", tmp_path / "q", *TINY, "--partitions", 2, "--keep-sequential-samples", input="")
    assert done.returncode == 2 and "it needs a file, not stdin" in done.stderr
    assert encode(tmp_path, tmp_path / "all.jsonl") == parts


def test_sequential_partitions_need_input_that_can_be_read_twice(tmp_path):
    flags = ["--output-prefix", tmp_path / "q", *TINY, "--partitions", 2, "--keep-sequential-samples"]
    os.mkfifo(tmp_path / "fifo")
    for name in [tmp_path / "fifo", "/dev/stdin", "/dev/null"]:
        done = run("--input", name, *flags, input='{"text": "x"}\n')
        assert done.returncode == 2 and f"it needs a file, and {name} is a pipe or a device" in done.stderr
    assert leftovers(tmp_path, "q") == []


def test_skipped_lines_are_counted_and_listed(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one", "title": "1"}\n{"text": "two"}\n\n{"text": "three", "title": 3}\n')
    (tmp_path / "b.jsonl").write_bytes(b'{"text": "four", "title": "4"}\r\n{"text": "\xff"}\n{"text": "five", "title": "5"}')
    done = good(
        "--input", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--on-error", "skip",
        "--json-keys", "text", "title",
    )  # fmt: skip
    assert done.stdout.startswith("3 documents")
    assert done.stderr.endswith(f"muster-preprocess: 4 lines were left out, see {tmp_path}/out.skipped.jsonl\n")
    skipped = [json.loads(line) for line in (tmp_path / "out.skipped.jsonl").open()]
    assert [(os.path.basename(s["file"]), s["line"], s["column"], s["reason"]) for s in skipped] == [
        ("a.jsonl", 2, 1, 'no key "title"'),
        ("a.jsonl", 3, 1, "an empty line"),
        ("a.jsonl", 4, 1, 'key "title": the value is neither a text nor a list of texts'),
        ("b.jsonl", 2, 11, "not valid UTF-8"),
    ]
    for key, texts in [("text", ["one", "four", "five"]), ("title", ["1", "4", "5"])]:
        assert read_documents(tmp_path / f"out_{key}_document") == [[ids] for ids in tokenize(texts, *TINY)]
    good("--input", "-", "--output-prefix", tmp_path / "out", *TINY, "--on-error", "skip", input='{"text": "x"}')
    assert not (tmp_path / "out.skipped.jsonl").exists()


def test_a_token_that_does_not_fit_takes_its_line_along(tmp_path):
    flags = ["--tokenizer-type", "NullTokenizer", "--vocab-size", "1000"]
    text = "".join(json.dumps({"a": a, "b": b}) + "\n" for a, b in [("1 2", "3"), ("4", "5 70000"), ("6", "7 8"), ("9", "x")])
    good("--input", "-", "--output-prefix", tmp_path / "out", *flags, "--json-keys", "a", "b", "--on-error", "skip", input=text)
    assert read_documents(tmp_path / "out_a_document") == [[[1, 2]], [[6]]]
    assert read_documents(tmp_path / "out_b_document") == [[[3]], [[7, 8]]]
    reasons = [json.loads(line)["reason"] for line in (tmp_path / "out.skipped.jsonl").open()]
    assert "70000" in reasons[0] and len(reasons) == 2


@pytest.mark.parametrize("form", ["jsonl", "lines", "file", "text"])
def test_lines_that_are_too_long(form, tmp_path):
    flags = ["--input-format", form, "--output-prefix", tmp_path / "out", *TINY, "--max-document-mib", 1]
    pad = "word " * 500_000
    (tmp_path / "long").write_text(json.dumps({"text": "a"}) + "\n" + json.dumps({"text": pad}) + "\r\n" + json.dumps({"text": "b"}))
    done = run("--input", tmp_path / "long", *flags)
    line = {"jsonl": 2, "lines": 2, "file": 1, "text": 1}[form]
    assert done.returncode == 65 and f"long:{line}:" in done.stderr and "1 MiB; --max-document-mib raises" in done.stderr
    assert leftovers(tmp_path, "out") == []
    if form == "text":
        return
    good("--input", tmp_path / "long", *flags, "--on-error", "skip", "--workers", 1)
    want = {"jsonl": ["a", "b"], "lines": ['{"text": "a"}', '{"text": "b"}'], "file": []}[form]
    assert read_documents(tmp_path / "out_text_document") == ([[ids] for ids in tokenize(want, *TINY)] if want else [])
    assert [json.loads(s)["line"] for s in (tmp_path / "out.skipped.jsonl").open()] == [line]


def test_a_text_of_many_tokens_is_not_kept_in_memory(tmp_path):
    # More tokens than are kept of one text.
    text = "a b c " * 720_000
    (tmp_path / "in.jsonl").write_text(json.dumps({"text": "x"}) + "\n" + json.dumps({"text": text}) + "\n" + json.dumps({"text": "y"}))
    for name, flags in [("narrow", TINY), ("wide", [*TINY[:3], str(tmp_path)])]:
        if name == "wide":
            with gzip.open(GOLDEN / "tokenizers/llama3/tokenizer.json.gz") as packed, open(tmp_path / "tokenizer.json", "wb") as out:
                shutil.copyfileobj(packed, out)
        good("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / name, *flags)
        got = read_documents(tmp_path / f"{name}_text_document")
        assert got == [[ids] for ids in tokenize(["x", text, "y"], *flags)]
        assert len(got[1][0]) > 2_000_000


# --- JSON against Python's own module ---

PIECES = [
    '"', "\\", "{", "}", "[", "]", ",", ":", " ", "\t", "0", "1", "-", "+", ".", "e", "E", "true", "false", "null", "NaN", "Infinity",
    "-Infinity", '"text"', '"x"', "\\u0041", "\\ud83d\\ude42", "\\ud800", "\\n", "\\q", "é", "\x1f", "\x7f", "\u2028", "01", "1.5e+3", '"a": 1, ',
]  # fmt: skip
SEEDS = ['{"text": "abc"}', '{"a": [1, -2.5e3, {"b": null}], "text": ["x", "y"], "c": NaN}', '{"text": "\\u00e9", "text": "z"}', '{"text": "long and \\" plain text of words"}']


def python_verdict(line):
    try:
        text = json.loads(line)["text"]
        texts = text if isinstance(text, list) else [text]
        for t in texts:
            t.encode()  # refuses lone surrogates and what is no text
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return texts


def test_json_is_read_as_python_reads_it(tmp_path):
    rng = random.Random(11)
    lines = set()
    while len(lines) < 20_000:
        line = rng.choice(SEEDS)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(line) + 1)
            line = line[:at] + rng.choice(PIECES) + line[at + rng.choice([0, 0, 1, 2]) :]
        lines.add(line)
    lines = sorted(lines)
    verdicts = [python_verdict(line) for line in lines]
    refused = [i + 1 for i, texts in enumerate(verdicts) if texts is None]
    assert 2000 < len(refused) < 18_000
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8", newline="\n")
    good("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "a", *TINY, "--on-error", "skip")
    assert [json.loads(line)["line"] for line in (tmp_path / "a.skipped.jsonl").open()] == refused
    accepted = [texts for texts in verdicts if texts is not None]
    ids = iter(tokenize([t for texts in accepted for t in texts], *TINY))
    assert read_documents(tmp_path / "a_text_document") == [[next(ids) for _ in texts] for texts in accepted]
