#!/usr/bin/env bash
# On a machine with a GPU: the speed of training Llama-3-8B, beside what limits it, all on one card in under 10 minutes. Run from the
# folder that ./dev device-bundle made. PEER=COMMAND runs another program in between, for a comparison. SECONDS_A_ROW: default 180.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/environment.sh"
row=("$here/bin/muster_gpu_bench" --cache "$here/gemms.txt")
long=${SECONDS_A_ROW:-180}

echo "== the limit: products, attention and LM head alone, by PyTorch"
python3 "$here/gpu_limit.py" 20 1
echo "== training, the reference recipe"
"${row[@]}" --recipe delayed --seconds "$long" --profile
if [ -n "${PEER:-}" ]; then
  echo "== the peer: $PEER"
  bash -c "$PEER" || echo "the peer ended with an error"
fi
echo "== training, other choices"
"${row[@]}" --recipe tensorwise --seconds $((long / 3))
"${row[@]}" --recipe delayed --bf16-gradients --seconds $((long / 9))
"${row[@]}" --recipe delayed --fast-accumulation all --seconds $((long / 9))
echo "== the kernels beside the products"
"$here/bin/muster_gpu_kernels_bench"
