"""muster bundle: the trainer's tree, moved, and run by a job from where staging has put it."""

import json
import os
import subprocess

from conftest import SOURCE


def test_a_staged_bundle_trains(cluster):
    bundle = cluster.work / "bundle"
    made = cluster.json("bundle", "--cpu", "--output", bundle, timeout=200)
    parts = {part["name"]: part for part in made["parts"]}
    assert {"programs", "LibTorch", "other"} <= set(parts)
    assert made["bytes"] == sum(f.stat().st_size for f in bundle.rglob("*") if f.is_file())
    _, err = cluster.muster("bundle", "--output", bundle, code=2)
    assert "is there already" in err

    moved = cluster.work / "elsewhere"
    os.rename(bundle, moved)
    # With nothing in the environment.
    version = subprocess.run([moved / "bin/muster-train", "--version"], env={}, capture_output=True, timeout=60)
    assert version.returncode == 0 and b"muster-train" in version.stdout, version.stderr

    flags = ["mock-data", "train-iters=2", "log-interval=1", "eval-iters=0", "tokenizer-type=NullTokenizer", "vocab-size=511"]
    recipe = cluster.work / "tiny.toml"
    text = (SOURCE / "recipes/tiny_cpu.toml").read_text()
    lines = [l for l in text.splitlines() if not l.startswith(("data-path", "split", "tokenizer-", "eval-"))]
    recipe.write_text("\n".join(lines) + "\n")
    words = [word for flag in flags for word in ("--flag", flag)]
    host = cluster.HOSTS[0]
    out, _ = cluster.muster("submit", recipe, "--stage", moved, *words, "--env", "LD_DEBUG=libs", "--hostfile",
                            cluster.hostfile(2, [host]), "--json", timeout=250)
    job = json.loads(out)
    assert job["state"] == "succeeded", job
    log = cluster.log_file(job, 1).read_text()
    assert "iteration        2/" in log, log
    # The loader's own words: program and libraries are the staged ones.
    loaded = cluster.log_file(job, 1, "stderr").read_text()
    staged = next((cluster.state / host / "stage").glob("*.manifest")).with_suffix("")
    assert f"calling init: {staged}/bin/../lib/libtorch_cpu.so" in loaded
    assert str(moved) not in loaded
