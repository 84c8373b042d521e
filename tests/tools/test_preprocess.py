"""muster-preprocess as a program: Megatron's files to the byte, bad input, memory, interruptions."""

import gzip
import hashlib
import json
import pathlib
import resource
import shutil
import signal
import subprocess
import time

import pytest
from preprocess_program import GOLDEN, PROGRAM, TINY, leftovers, run, tokenize


@pytest.fixture(scope="module")
def llama3(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama3")
    with gzip.open(GOLDEN / "tokenizers/llama3/tokenizer.json.gz") as packed, open(folder / "tokenizer.json", "wb") as out:
        shutil.copyfileobj(packed, out)
    shutil.copy(GOLDEN / "tokenizers/llama3/tokenizer_config.json", folder)
    return folder


@pytest.fixture(scope="module")
def corpora(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    for path in (GOLDEN / "megatron/data").glob("*.jsonl"):
        shutil.copy(path, folder)
    with gzip.open(GOLDEN / "megatron/data/corpus.jsonl.gz") as packed, open(folder / "corpus.jsonl", "wb") as out:
        shutil.copyfileobj(packed, out)
    return folder


def sums():
    lines = (GOLDEN / "megatron/SHA256SUMS").read_text().splitlines()
    return {name.removeprefix("data/"): digest for digest, name in (line.split(maxsplit=1) for line in lines)}


LLAMA3_CASES = [
    ("corpus_llama3", "corpus", ["--append-eod"]),
    ("corpus2_llama3", "corpus2", ["--append-eod"]),
    ("corpus3_llama3", "corpus3", ["--append-eod", "--json-keys", "text", "title"]),
    ("corpus_llama3_nobos", "corpus", ["--append-eod", "--tokenizer-hf-no-include-special-tokens"]),
    ("corpus2_llama3_nobos", "corpus2", ["--append-eod", "--tokenizer-hf-no-include-special-tokens"]),
    ("corpus2_llama3_noeod", "corpus2", []),
    ("corpus2_llama3_partitions2", "corpus2", ["--append-eod", "--workers", "2", "--partitions", "2"]),
]


def check_sums(folder, name, keys=("text",)):
    for key in keys:
        for suffix in ("bin", "idx"):
            file = f"{name}_{key}_document.{suffix}"
            assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == sums()[file], file


@pytest.mark.parametrize("name,corpus,flags", LLAMA3_CASES, ids=[c[0] for c in LLAMA3_CASES])
def test_files_are_megatrons(name, corpus, flags, llama3, corpora, tmp_path):
    done = run(
        "--input", corpora / f"{corpus}.jsonl", "--output-prefix", tmp_path / name,
        "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", llama3, *flags,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_sums(tmp_path, name, ("text", "title") if "title" in flags else ("text",))


@pytest.mark.parametrize("name,corpus,size", [("null_50000", "null", 50000), ("null_128256", "null_large", 128256)])
def test_null_tokenizer_files_are_megatrons(name, corpus, size, corpora, tmp_path):
    done = run(
        "--input", corpora / f"{corpus}.jsonl", "--output-prefix", tmp_path / name,
        "--tokenizer-type", "NullTokenizer", "--vocab-size", size, "--append-eod",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_sums(tmp_path, name)


@pytest.fixture(scope="module")
def tiktoken_flags(tmp_path_factory):
    vocabulary = tmp_path_factory.mktemp("tiktoken") / "tiktoken8192.json"
    with gzip.open(GOLDEN / "megatron/data/tiktoken8192.json.gz") as packed, open(vocabulary, "wb") as out:
        shutil.copyfileobj(packed, out)
    return ["--tokenizer-type", "TikTokenizer", "--tokenizer-model", str(vocabulary), "--vocab-size", "9192"]


@pytest.mark.parametrize("name,corpus,pattern", [("corpus_tiktoken", "corpus", "v2"), ("corpus2_tiktoken_v1", "corpus2", "v1")])
def test_tiktoken_files_are_megatrons(name, corpus, pattern, tiktoken_flags, corpora, tmp_path):
    done = run(
        "--input", corpora / f"{corpus}.jsonl", "--output-prefix", tmp_path / name, *tiktoken_flags,
        "--tiktoken-pattern", pattern, "--append-eod",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_sums(tmp_path, name)


def test_sentencepiece_files_are_megatrons(corpora, tmp_path):
    done = run(
        "--input", corpora / "corpus.jsonl", "--output-prefix", tmp_path / "corpus_spm", "--append-eod",
        "--tokenizer-type", "SentencePieceTokenizer", "--tokenizer-model", GOLDEN / "megatron/data/spm2000.model",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    check_sums(tmp_path, "corpus_spm")


def golden_tokens(name):
    cases = [json.loads(line) for line in (GOLDEN / "megatron/tokens.jsonl").open()]
    return [case for case in cases if case["tokenizer"] == name]


def check_tokens(name, *flags):
    cases = golden_tokens(name)
    assert len(cases) == 60
    assert tokenize([case["text"] for case in cases], *flags) == [case["ids"] for case in cases]


def test_golden_tokens(llama3, tiktoken_flags):
    hf = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", llama3]
    check_tokens("llama3", *hf)
    check_tokens("llama3_nobos", *hf, "--tokenizer-hf-no-include-special-tokens")
    check_tokens("llama3_ordinary", *hf, "--tokenizer-hf-no-include-special-tokens", "--split-special-tokens")
    check_tokens("tiktoken_v2", *tiktoken_flags)


def test_output_does_not_depend_on_the_number_of_workers(corpora, tmp_path):
    big = tmp_path / "big.jsonl"
    with big.open("wb") as out:
        for _ in range(6):
            out.write((corpora / "corpus.jsonl").read_bytes() + b"\n")
    files = []
    for workers in (1, 2, 5):
        done = run("--input", big, "--output-prefix", tmp_path / f"w{workers}", *TINY, "--append-eod", "--workers", workers)
        assert done.returncode == 0, done.stderr
        files.append([(tmp_path / f"w{workers}_text_document.{s}").read_bytes() for s in ("bin", "idx")])
    assert files[0] == files[1] == files[2]
    sequential = run("--input", big, "--output-prefix", tmp_path / "k", *TINY, "--append-eod", "--workers", 4, "--partitions", 2, "--keep-sequential-samples")
    assert sequential.returncode == 0
    assert (tmp_path / "k_text_document.bin").read_bytes() == files[0][0]


def test_progress_line_is_megatrons(corpora, tmp_path):
    done = run("--input", corpora / "corpus2.jsonl", "--output-prefix", tmp_path / "x", *TINY, "--log-interval", 100)
    assert "Processed 223 documents (" in done.stderr
    assert done.stderr.splitlines()[-1].endswith(" MB/s).")


def test_tokenize_reads_one_text_and_prints_its_ids():
    done = run("tokenize", *TINY, input="In the beginning\n")
    ids = done.stdout.split()
    assert done.stdout.count("\n") == 1 and ids[0] == "0"
    assert run("detokenize", *TINY, input=" ".join(ids[1:])).stdout == "In the beginning\n"
    assert run("tokenize", *TINY, "--append-eod", input="x").stdout.split()[-1] == "1"


BAD_LINES = [b"", b"{", b'{"text": 5}', b'{"txt": "x"}', b'["x"]', b'{"text": "\xff"}', b'{"text": "a\tb"}', b'{"text": "\\ud800"}']


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_bad_line_is_named_and_nothing_looks_finished(bad, tmp_path):
    good = b'{"text": "' + b"good " * 40 + b'"}\n'
    (tmp_path / "in.jsonl").write_bytes(good * 7000 + bad + b"\n" + good + b"{\n" + good * 7000)
    done = run("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--workers", 3)
    assert done.returncode == 65
    assert f"{tmp_path}/in.jsonl:7001:" in done.stderr
    assert leftovers(tmp_path, "out") == []


def test_mistakes_on_the_command_line(tmp_path):
    for args, message in [
        (["--imput", "x"], "did you mean '--input'"),
        (["--input", "x"], "--output-prefix PREFIX is missing"),
        (["--input", "x", "--output-prefix", "y"], "--tokenizer-type TYPE is missing"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--workers", "3", "--partitions", "2"], "not divisible"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--workers", "100000"], "--workers 100000: at most 1024"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--partitions", "2000"], "--partitions 2000: at most 1024"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--input-format", "txt"], "did you mean 'text'"),
        (["--find-optimal-num-workers"], "--find-optimal-num-workers is not needed here"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--json-keys", "a", "a"], "--json-keys names a key twice"),
        (["--input", "-", "-", "--output-prefix", "y", *TINY], "one stdin"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--keep-newlines"], "--keep-newlines needs --split-sentences"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--on-error", "skp"], "did you mean 'skip'"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--progress", "bars"], "did you mean 'bar'"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--max-document-mib", "17592186044416"], "at least 1 and at most 1048576"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--save-interval", str(2**63 - 1)], "at least 0 and at most 1000000000"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--partitions", 2, "--json-keys", "text", "0_text"], "would be named y_0_text_document"),
        (["--input", "x", "--output-prefix", "y", *TINY, "--legacy-tokenizer"], "--legacy-tokenizer is not understood: leave it out"),
        (["--input", "x", "--tiktoken-special-tokens", "<unk>", "<s>"], "--tiktoken-special-tokens is not understood: leave it out"),
        (["--input", "x", "--vocab-extra-ids", "100"], "--vocab-extra-ids is not understood: leave it out"),
        (["tokenize", "--tokenizer-typ", "x"], "did you mean '--tokenizer-type'"),
    ]:
        done = run(*args, cwd=tmp_path)
        assert done.returncode == 2 and message in done.stderr, (args, done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_megatrons_flags_without_an_effect_are_taken(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "some words"}\n')
    flags = ["--make-vocab-size-divisible-by", 128, "--tensor-model-parallel-size", 2, "--trust-remote-code"]
    files = []
    for name, more in [("a", []), ("b", flags)]:
        done = run("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / name, *TINY, *more)
        assert done.returncode == 0, done.stderr
        files.append([(tmp_path / f"{name}_text_document.{s}").read_bytes() for s in ("bin", "idx")])
    assert files[0] == files[1]


def test_files_that_can_not_be_used(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "x"}\n')
    for args, message in [
        (["--input", tmp_path / "none", "--output-prefix", tmp_path / "out", *TINY], "none: No such file"),
        (["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "no/out", *TINY], "create"),
        (["--input", tmp_path, "--output-prefix", tmp_path / "out", *TINY], "Is a directory"),
        (["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY[:3], tmp_path / "none"], "none"),
    ]:
        done = run(*args)
        assert done.returncode == 65 and message in done.stderr, (args, done.stderr)
        assert leftovers(tmp_path, "out") == []


def test_a_full_disk_is_named_and_leaves_nothing(corpora, tmp_path):
    def no_space():  # every write beyond 10 kB fails
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))

    done = run("--input", corpora / "corpus.jsonl", "--output-prefix", tmp_path / "out", *TINY, preexec_fn=no_space)
    assert done.returncode == 65 and "write" in done.stderr and "File too large" in done.stderr
    assert leftovers(tmp_path, "out") == []


def test_help_and_version():
    assert "--tokenizer-model" in run("--help").stdout
    assert run("--version").stdout.startswith("muster-preprocess ")


def test_as_many_files_as_the_system_lets_us(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"text": "x"}\n')
    args = ["--input", tmp_path / "in.jsonl", *TINY, "--partitions", 50]
    done = run(*args, "--output-prefix", tmp_path / "a", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000)))
    assert done.returncode == 0, done.stderr
    done = run(*args, "--output-prefix", tmp_path / "b", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)))
    assert done.returncode == 65 and "Too many open files; raise the limit (ulimit -n)" in done.stderr
    assert leftovers(tmp_path, "b") == []


def peak_memory_mib(*args):
    """VmHWM, looked at until the end: ru_maxrss would count this process too."""
    process = subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                peak = max(peak, int(line.split()[1]))
        time.sleep(0.01)
    assert process.returncode == 0
    return peak / 1024


def test_memory_does_not_grow_with_the_input(corpora, tmp_path):
    part = (corpora / "corpus.jsonl").read_bytes() + b"\n"
    peaks = []
    for copies in (10, 40):
        (tmp_path / "in.jsonl").write_bytes(part * copies)
        peaks.append(peak_memory_mib("--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "o", *TINY, "--workers", 2))
    assert peaks[1] < 512
    assert peaks[1] < peaks[0] + 40


@pytest.mark.parametrize("form", ["lines", "texts"])
def test_memory_is_bounded_where_there_are_more_lines_or_texts_than_bytes_of_text(form, tmp_path):
    texts = 1 << 22
    text = "\n" * (2 << 20) if form == "lines" else '{"text": [' + '"a",' * (texts - 1) + '"a"]}\n'
    (tmp_path / "in.jsonl").write_text(text)
    flags = ["--tokenizer-type", "ByteLevelTokenizer", "--on-error", "skip", "--workers", 16]
    args = ["--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "o", *flags]
    assert peak_memory_mib(*args) < (150 if form == "lines" else 200)
    if form == "lines":
        with open(tmp_path / "o.skipped.jsonl", "rb") as file:
            assert sum(1 for _ in file) == 2 << 20
        return
    assert (tmp_path / "o_text_document.bin").stat().st_size == 2 * texts
    (tmp_path / "in.jsonl").write_text('{"text": [' + '"a",' * texts + '"a"]}\n')
    done = run(*args[:-4])
    assert done.returncode == 65 and "a list of more than 4194304 texts" in done.stderr


def test_a_killed_run_leaves_nothing_that_looks_finished(corpora, tmp_path):
    part = (corpora / "corpus.jsonl").read_bytes() + b"\n"
    (tmp_path / "in.jsonl").write_bytes(part * 100)
    process = subprocess.Popen(
        [PROGRAM, "--input", tmp_path / "in.jsonl", "--output-prefix", tmp_path / "out", *TINY, "--workers", "1"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while process.poll() is None and not leftovers(tmp_path, "out"):
        time.sleep(0.01)
    assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "out_text_document.bin").exists()
    assert not (tmp_path / "out_text_document.idx").exists()


def test_a_closed_stdin_is_no_empty_input(tmp_path):
    command = '"$0" "$@" <&-'
    args = [PROGRAM, "--input", "-", "--output-prefix", tmp_path / "out", *TINY]
    done = subprocess.run(["sh", "-c", command, *map(str, args)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (65, "muster-preprocess: --input -: stdin is closed\n")
    assert list(tmp_path.iterdir()) == []


def test_ids_that_can_not_be_written_are_an_error():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PROGRAM, "tokenize", *map(str, TINY)], input=b"a text", stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 65
    assert b"stdout can't be written" in done.stderr
