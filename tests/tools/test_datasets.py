"""merge, inspect, verify, sample and stats."""

import hashlib
import json
import struct
import xml.etree.ElementTree

import pytest
from preprocess_program import TINY, files_of, good, leftovers, read_documents, run

TEXTS = [["one"], ["two", "and a half"], [], ["three " * 300], ["four"], [""]]


def write(tmp_path, name, documents, *flags):
    lines = "".join(json.dumps({"text": texts}) + "\n" for texts in documents)
    good("--input", "-", "--output-prefix", tmp_path / name, *TINY, "--append-eod", *flags, input=lines)
    return tmp_path / f"{name}_text_document"


@pytest.fixture()
def dataset(tmp_path):
    return write(tmp_path, "all", TEXTS)


def test_merged_data_sets_are_one(dataset, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    # In the order of their names, whatever order they were made in.
    for name, part in [("c", TEXTS[4:]), ("a", TEXTS[:2]), ("b", TEXTS[2:4])]:
        write(folder, name, part)
    good("merge", "--input", folder, "--output-prefix", tmp_path / "merged")
    assert files_of(tmp_path / "merged") == files_of(dataset)
    prefixes = [folder / f"{name}_text_document" for name in "abc"]
    good("merge", "--input", prefixes[0], f"{prefixes[1]}.bin", f"{prefixes[2]}.idx", "--output-prefix", tmp_path / "named")
    assert files_of(tmp_path / "named") == files_of(dataset)


def test_modes_are_merged_when_asked(dataset, tmp_path):
    for name, modes in [("a", [0, 1, 2]), ("b", [3])]:
        prefix = write(tmp_path, name, [[str(m)] for m in modes])
        with open(f"{prefix}.idx", "ab") as index:
            index.write(bytes(modes))
    parts = [tmp_path / "a_text_document", tmp_path / "b_text_document"]
    good("merge", "--multimodal", "--input", *parts, "--output-prefix", tmp_path / "m")
    assert files_of(tmp_path / "m")[1].endswith(bytes([0, 1, 2, 3]))
    good("merge", "--input", *parts, "--output-prefix", tmp_path / "n")
    assert files_of(tmp_path / "m")[1][:-4] == files_of(tmp_path / "n")[1]
    done = run("merge", "--multimodal", "--input", dataset, "--output-prefix", tmp_path / "o")
    assert done.returncode == 65 and "no modes: it is not multimodal" in done.stderr
    assert leftovers(tmp_path, "o") == []


def test_what_can_not_be_merged(dataset, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    done = run("merge", "--input", folder, "--output-prefix", tmp_path / "x")
    assert done.returncode == 65 and "no .bin and .idx in this folder" in done.stderr
    write(folder, "a", TEXTS[:1])
    (folder / "README.md").write_text("foreign")
    done = run("merge", "--input", folder, "--output-prefix", tmp_path / "x")
    assert done.returncode == 65 and "README.md has no .idx beside it" in done.stderr
    wide = tmp_path / "wide_text_document"
    good("--input", "-", "--output-prefix", tmp_path / "wide", "--tokenizer-type", "NullTokenizer", "--vocab-size", 100000, input='{"text": "1"}')
    done = run("merge", "--input", dataset, wide, "--output-prefix", tmp_path / "x")
    assert done.returncode == 65 and "wide_text_document.idx, offset 17: its tokens have 4 bytes" in done.stderr
    done = run("merge", "--input", dataset, wide, "--output-prefix", dataset)
    assert done.returncode == 65 and "is one of the inputs" in done.stderr
    with open(f"{wide}.bin", "ab") as file:
        file.write(b"tail")
    done = run("merge", "--input", wide, "--output-prefix", tmp_path / "x")
    assert done.returncode == 65 and "wide_text_document.bin has 8 bytes" in done.stderr
    assert leftovers(tmp_path, "x") == []
    for args, message in [(["merge"], "--input FOLDER is missing"), (["merge", "--input", "x"], "--output-prefix PREFIX is missing")]:
        done = run(*args)
        assert done.returncode == 2 and message in done.stderr


def test_inspect(dataset):
    facts = json.loads(good("inspect", f"{dataset}.idx", "--json").stdout)
    rows = read_documents(dataset)
    lengths = sorted(sum(map(len, document)) for document in rows)
    assert facts == [
        {
            "prefix": str(dataset), "token_type": "uint16", "tokens": sum(lengths), "documents": 6, "empty_documents": 1, "sequences": 6,
            "multimodal": False, "shortest": 0, "median": lengths[2], "mean": sum(lengths) / 6, "longest": lengths[-1],
            "bin_bytes": 2 * sum(lengths), "idx_bytes": 34 + 12 * 6 + 8 * 7,
        }
    ]  # fmt: skip
    assert "  token_type      uint16\n" in good("inspect", dataset).stdout
    assert run("inspect").returncode == 2
    done = run("inspect", f"{dataset}x")
    assert done.returncode == 65 and "textx.idx" not in done.stderr and f"{dataset}x.idx" in done.stderr


def test_verify_a_good_data_set(dataset):
    done = good("verify", dataset, *TINY, "--sums")
    assert f"{dataset}: good: 6 documents, 6 sequences" in done.stdout
    for suffix, data in zip(("bin", "idx"), files_of(dataset)):
        assert f"{hashlib.sha256(data).hexdigest()}  {dataset}.{suffix}\n" in done.stdout
    report = json.loads(good("verify", dataset, dataset, "--json").stdout)
    assert [r["good"] for r in report] == [True, True] and report[0]["highest_token"] == max(t for d in read_documents(dataset) for s in d for t in s)


def damage(dataset, at, data, suffix="idx"):
    path = dataset.with_name(f"{dataset.name}.{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + data + whole[at + len(data) :])


STARTS = 34 + 4 * 6
DOCUMENTS = STARTS + 8 * 6


@pytest.mark.parametrize(
    "at,data,message",
    [
        (0, b"X", ".idx, offset 0: not a Megatron index"),
        (9, b"\2", ".idx, offset 9: version 2"),
        (17, b"\6", ".idx, offset 17: token type code 6"),
        (18, b"\7", ".idx, offset 18: 7 sequences"),
        (34, struct.pack("<i", -1), "(its length is at offset 34)"),
        (38, struct.pack("<i", 9), "(its length is at offset 38)"),
        (STARTS + 8, struct.pack("<q", 10**9), f".idx, offset {STARTS}: sequence 0"),
        (DOCUMENTS + 8, struct.pack("<q", 5), f".idx, offset {DOCUMENTS + 8}: "),
        (DOCUMENTS + 48, struct.pack("<q", 5), ".idx, offset "),
    ],
)
def test_verify_names_the_damaged_byte(at, data, message, dataset):
    damage(dataset, at, data)
    done = run("verify", dataset, "--json")
    assert done.returncode == 65
    report = json.loads(done.stdout)[0]
    assert not report["good"] and any(message in problem for problem in report["problems"]), report["problems"]
    done = run("verify", dataset)
    assert done.returncode == 65 and message in done.stderr and "DAMAGED" in done.stdout


def test_verify_finds_tokens_truncation_and_swaps(dataset, tmp_path):
    damage(dataset, 4, struct.pack("<H", 60000), "bin")
    assert run("verify", dataset).returncode == 0  # nobody said which tokens there are
    for flags in (TINY, ["--vocab-size", "60000"]):
        done = run("verify", dataset, *flags)
        assert done.returncode == 65 and f"{dataset}.bin, offset 4 (sequence 0, token 2): token 60000 is not below the vocabulary size" in done.stderr
    other = write(tmp_path, "other", TEXTS[:3])
    damage_bin = other.with_name(other.name + ".bin")
    damage_bin.write_bytes(damage_bin.read_bytes()[:-2])
    assert run("verify", other).returncode == 65
    for prefix, others in [(dataset, other)]:
        (tmp_path / "swapped.bin").write_bytes(files_of(prefix)[0])
        (tmp_path / "swapped.idx").write_bytes(files_of(others)[1])
    done = run("verify", tmp_path / "swapped")
    assert done.returncode == 65 and "swapped.bin" in done.stderr


def test_sample_prints_documents(dataset):
    done = good("sample", 9, dataset, *TINY)
    assert done.stdout.count("--- document ") == 6 and "two" in done.stdout and "and a half" in done.stdout
    rows = [json.loads(line) for line in good("sample", 2, dataset, *TINY, "--json", "--first", 1).stdout.splitlines()]
    assert [row["document"] for row in rows] == [1, 2] and [len(row["sequences"]) for row in rows] == [2, 0]
    assert "and a half" in rows[0]["sequences"][1]["text"]
    ids = json.loads(good("sample", 1, dataset, "--json", "--first", 0).stdout)["sequences"][0]["ids"]
    assert list(map(int, ids.split())) == read_documents(dataset)[0][0]
    assert good("sample", 3, dataset, "--seed", 1).stdout == good("sample", 3, dataset, "--seed", 1).stdout
    done = run("sample", "many", dataset)
    assert done.returncode == 2 and "sample many: expected a number" in done.stderr
    damage(dataset, 0, struct.pack("<H", 60000), "bin")
    done = run("sample", 1, dataset, *TINY, "--first", 0)
    assert done.returncode == 65 and ".bin, offset 0" in done.stderr and "60000" in done.stderr


def test_stats_in_text_json_and_svg(dataset, tmp_path):
    lengths = sorted(sum(map(len, document)) for document in read_documents(dataset))
    out = json.loads(good("stats", dataset, "--json", "--svg", tmp_path / "h<&.svg").stdout)
    assert (out["count"], out["tokens"], out["longest"], out["median"]) == (6, sum(lengths), lengths[-1], lengths[2])
    for b in out["bins"]:
        inside = [n for n in lengths if b["from"] <= n <= b["to"]]
        assert (b["count"], b["tokens"]) == (len(inside), sum(inside))
    assert sum(b["count"] for b in out["bins"]) == 6
    bars = xml.etree.ElementTree.parse(tmp_path / "h<&.svg").getroot().findall(".//{*}rect/{*}title")
    assert [int(bar.text.split()[0]) for bar in bars] == [b["count"] for b in out["bins"]]
    text = good("stats", dataset).stdout
    assert text.startswith(f"6 documents, {sum(lengths)} tokens; mean") and "#" in text
    assert json.loads(good("stats", dataset, "--json", "--sequences").stdout)["of"] == "sequences"


def test_each_subcommand_has_help():
    for command in ("tokenize", "detokenize", "merge", "inspect", "verify", "sample", "stats"):
        assert good(command, "--help").stdout.startswith(f"muster-preprocess {command}: ")
    done = run("inspekt", "x")
    assert done.returncode == 2 and "did you mean 'inspect'" in done.stderr
