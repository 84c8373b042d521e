"""muster submit runs the two-node recipe's layout, small: PP 2 over two network namespaces, DP 2, an uneven last stage."""

import json
import os
import re
import subprocess

import pytest

from conftest import BIN
from namespaces import Namespaces

TRANSPORT = "command:ip netns exec {host}"
ITERATIONS = 4

RECIPE = """
[job]
command = ["{train}"]

[parallel]
tp = 1
pp = 2
cp = 1
micro_batch = 1
num_microbatches = 4

[flags]
num-layers = 3
decoder-last-pipeline-num-layers = 1
{flags}
"""

FLAGS = {
    "hidden-size": 32, "ffn-hidden-size": 64, "num-attention-heads": 4, "seq-length": 32, "max-position-embeddings": 32,
    "vocab-size": 256, "mock-data": True, "tokenizer-type": "NullTokenizer", "train-iters": ITERATIONS, "lr": 0.003,
    "lr-decay-style": "constant", "eval-iters": 0, "log-interval": 1, "untie-embeddings-and-output-weights": True,
    "params-dtype": "fp64", "calculate-per-token-loss": True, "use-distributed-optimizer": True,
}


@pytest.fixture(scope="module")
def hosts():
    with Namespaces(2) as made:
        yield made


def losses(text):
    return [float(x) for x in re.findall(r"lm loss: (\d\.\d+E[+-]\d+)", text)]


def test_two_nodes_train_as_one_rank_does(hosts, cluster):
    flags = "\n".join(f"{name} = {json.dumps(value)}" for name, value in FLAGS.items())
    recipe = cluster.work / "two_nodes.toml"
    recipe.write_text(RECIPE.format(train=BIN / "muster-train", flags=flags))
    machines = ["--hostfile", hosts.hostfile(cluster.work / "hosts", 2), "--transport", TRANSPORT]
    plan, _ = cluster.muster("plan", recipe, *machines)
    assert "can't run it" not in plan

    child = cluster.popen("submit", recipe, *machines, "--json")
    code, job, live = cluster.finish(child, timeout=120)
    assert code == 0, live
    assert job["world"] == 4 and "data parallel 2, pipeline parallel 2" in cluster.log_file(job, 0).read_text()
    two_nodes = losses(cluster.log_file(job, 3).read_text())  # the last rank prints
    assert len(two_nodes) == ITERATIONS and not losses(cluster.log_file(job, 0).read_text())

    words = ["--num-layers", "3", "--micro-batch-size", "1", "--global-batch-size", "8"]
    for name, value in FLAGS.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    alone = subprocess.run([str(BIN / "muster-train"), *words], env=env, cwd=cluster.work, capture_output=True, text=True,
                           timeout=60)
    assert alone.returncode == 0, alone.stderr
    assert two_nodes == pytest.approx(losses(alone.stdout), rel=2e-6)  # seven printed digits
