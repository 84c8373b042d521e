#!/usr/bin/env bash
# On a machine with a GPU: every GPU test of the bundle, and with --bench the benchmark rows after it. Libraries come from this
# machine's own PyTorch. Run from the folder that ./dev device-bundle made.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/environment.sh"

nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.sm --format=csv,noheader
failed=0 count=0
for test in "$here"/bin/*_gpu_test; do
  count=$((count + 1))
  echo "== $(basename "$test")"
  "$test" --gtest_brief=1 || { failed=$((failed + 1)); echo "FAILED: $(basename "$test")"; }
done
if [ "${1:-}" = --bench ]; then
  for bench in "$here"/bin/*_bench; do "$bench"; done
fi
echo "$((count - failed)) passed, $failed failed"
[ "$failed" = 0 ]
