"""The peers of the tokenizer benchmarks, each on one core, and the text that all of them read.

tokenizer_peers.py prepare FOLDER [--corpus TEXT] [--megabytes N]
    Writes FOLDER/tokenizer.json (Llama 3, from tests/golden) and FOLDER/corpus.jsonl: documents of some kilobytes under the
    key "text". TEXT is a plain or gzip file; without it the dictionary of Debian's dict-gcide.
tokenizer_peers.py measure {tiktoken|tokenizers} FOLDER [--passes N]
    Prints {"bytes", "tokens", "seconds"}: the text in UTF-8, its tokens (no BOS), CPU seconds of the fastest pass.
"""

import argparse
import gzip
import json
import os
import pathlib
import shutil
import time

# One core for each peer; read when the packages load.
os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLAMA3 = ROOT / "tests/golden/tokenizers/llama3/tokenizer.json.gz"
GCIDE = pathlib.Path("/usr/share/dictd/gcide.dict.dz")
DOCUMENT_BYTES = 4096


def prepare(folder, corpus, megabytes):
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(LLAMA3) as packed, open(folder / "tokenizer.json", "wb") as out:
        shutil.copyfileobj(packed, out)
    if not corpus.exists():
        raise SystemExit(f"no text to measure with: {corpus} (install Debian's dict-gcide, or give --corpus)")
    with open(corpus, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with (gzip.open if packed else open)(corpus, "rb") as file:
        text = file.read(megabytes * 1_000_000).decode("utf-8", errors="replace")
    with open(folder / "corpus.jsonl", "w", encoding="utf-8") as out:
        document = []
        size = 0
        for line in text.splitlines(keepends=True):
            document.append(line)
            size += len(line)
            if size >= DOCUMENT_BYTES:
                out.write(json.dumps({"text": "".join(document)}, ensure_ascii=False) + "\n")
                document, size = [], 0
        if document:
            out.write(json.dumps({"text": "".join(document)}, ensure_ascii=False) + "\n")


def tiktoken_encoder(folder):
    import tiktoken

    content = json.loads((folder / "tokenizer.json").read_text())
    pattern = content["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in printable]
    byte_of = {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}
    ranks = {bytes(byte_of[c] for c in token): i for token, i in content["model"]["vocab"].items()}
    encoding = tiktoken.Encoding("llama3", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    return lambda texts: sum(len(encoding.encode_ordinary(text)) for text in texts)


def tokenizers_encoder(folder):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    # The form without offsets: the faster one.
    return lambda texts: sum(len(e.ids) for e in tokenizer.encode_batch_fast(texts, add_special_tokens=False))


def measure(peer, folder, passes):
    with open(folder / "corpus.jsonl", encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    encode = {"tiktoken": tiktoken_encoder, "tokenizers": tokenizers_encoder}[peer](folder)
    best = float("inf")
    for _ in range(passes):
        start = time.process_time()
        tokens = encode(texts)
        best = min(best, time.process_time() - start)
    print(json.dumps({"bytes": sum(len(t.encode()) for t in texts), "tokens": tokens, "seconds": best}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("prepare")
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--corpus", type=pathlib.Path, default=GCIDE)
    command.add_argument("--megabytes", type=int, default=20)
    command = commands.add_parser("measure")
    command.add_argument("peer", choices=["tiktoken", "tokenizers"])
    command.add_argument("folder", type=pathlib.Path)
    command.add_argument("--passes", type=int, default=2)
    args = parser.parse_args()
    if args.command == "prepare":
        prepare(args.folder, args.corpus, args.megabytes)
    else:
        measure(args.peer, args.folder, args.passes)


if __name__ == "__main__":
    main()
