#!/usr/bin/env bash
# On a machine with a GPU: every GPU test of the bundle, in under 10 minutes. Libraries come from this machine's own PyTorch. Run from
# the folder that ./dev device-bundle made. --memcheck: the kernels' tests once more under compute-sanitizer, small shapes alone.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/environment.sh"

nvidia-smi --query-gpu=name,driver_version,power.limit,clocks.sm --format=csv,noheader
failed=0 count=0
try() {
  count=$((count + 1))
  echo "== $1"
  shift
  "$@" || { failed=$((failed + 1)); echo "FAILED: $*"; }
}
# Mostly the CPU's side of the comparison, so it runs beside the others.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
trainer=
if python3 -c 'import pytest' 2> /dev/null; then
  MUSTER_BIN=$here/bin MUSTER_SOURCE=$here MUSTER_GOLDEN=$here PYTHONPATH=$here/python MUSTER_LARGE_TESTS=1 \
    python3 -m pytest -q -rP -p no:cacheprovider "$here/python/test_gpu.py" > "$log" 2>&1 &
  trainer=$!
else
  echo "no pytest here: muster-train's own tests are left out"
fi
for test in "$here"/bin/*_gpu_test; do
  try "$(basename "$test")" "$test" --gtest_brief=1
done
if [ "${1:-}" = --memcheck ]; then
  for test in fused kernels gemm attention; do
    try "$test under compute-sanitizer" compute-sanitizer --tool memcheck --error-exitcode 1 "$here/bin/muster_${test}_gpu_test" \
      --gtest_brief=1 --gtest_filter='-*Full*:*Models*:*Cache*:RmsNormBackward*:*Squares*'
  done
fi
if [ -n "$trainer" ]; then
  try "muster-train on the GPU" wait "$trainer"
  cat "$log"
fi
echo "$((count - failed)) passed, $failed failed"
[ "$failed" = 0 ]
