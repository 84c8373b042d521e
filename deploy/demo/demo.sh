#!/usr/bin/env bash
# Muster's main job, small but whole, on this one machine: two worker daemons as two hosts (127.0.0.2 and 127.0.0.3), real
# text, a small FP8 Llama on four ranks, live logs, a stop, and the proof that nothing is left.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BIN=$PWD/build/release/bin
WORK=$PWD/build/demo
HOSTFILE=hostfiles/two_local_workers
RECIPE=recipes/tiny_cpu.toml
ADDRESSES=(127.0.0.2 127.0.0.3)

usage() {
  cat <<'USAGE'
usage: ./dev demo [--keep]

  --keep   at the end leave a job, its two worker daemons and the controller running, to try muster ps|logs|stop
USAGE
}
keep=0
case ${1:-} in
  '') ;;
  --keep) keep=1 ;;
  -h|--help) usage; exit 0 ;;
  *) usage >&2; echo "demo: unknown option '$1'" >&2; exit 2 ;;
esac

bold= plain=
if [ -t 1 ]; then bold=$'\033[1m' plain=$'\033[0m'; fi
step() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; "$@"; }
muster() { "$BIN/muster" "$@"; }
fail() { echo "demo: $*" >&2; exit 1; }

workers=() own_controller=0 finished=0
# Whatever happens, nothing that the demo started stays behind, unless it was asked to.
cleanup() {
  local code=$? pid
  trap - EXIT INT TERM
  if [ "$finished" = 1 ] && [ "$keep" = 1 ]; then exit "$code"; fi
  muster stop tiny_cpu_endless --grace 5s > /dev/null 2>&1 || true
  for pid in "${workers[@]}"; do kill "$pid" 2> /dev/null || true; done
  for pid in "${workers[@]}"; do wait "$pid" 2> /dev/null || true; done
  [ "$own_controller" = 0 ] || muster serve --stop --force > /dev/null 2>&1 || true
  exit "$code"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

step "Text: the King James Bible, made into Megatron's .bin and .idx"
mkdir -p "$WORK"
gzip -dc recipes/tiny_text/kjv.jsonl.gz > "$WORK/text.jsonl"
show "$BIN/muster-preprocess" --input build/demo/text.jsonl --output-prefix build/demo/text --append-eod \
  --tokenizer-type HuggingFaceTokenizer --tokenizer-model recipes/tiny_tokenizer

step "Two worker daemons stand for two hosts"
# A controller that ran before stays as it was.
muster version --json | grep -q '"controller": *{' || own_controller=1
for address in "${ADDRESSES[@]}"; do
  printf '%s$ musterd --name %s --listen %s:7465 &%s\n' "$bold" "$address" "$address" "$plain"
  "$BIN/musterd" --name "$address" --listen "$address:7465" 2> "$WORK/musterd.$address.log" < /dev/null &
  workers+=($!)
done

step "What will run where (muster plan)"
show muster plan "$RECIPE" --hostfile "$HOSTFILE"

step "Train: four FP8 ranks over both hosts"
show muster submit "$RECIPE" --hostfile "$HOSTFILE" | tee "$WORK/submit.log"

step "The same job without an end, in the background"
show muster submit "$RECIPE" --hostfile "$HOSTFILE" --name tiny_cpu_endless --flag train-iters=1000000 --detach > "$WORK/detached.log" ||
  { cat "$WORK/detached.log" >&2; fail "the second job was refused"; }
tail -n 1 "$WORK/detached.log"
# Until every rank has printed its first line.
for _ in $(seq 100); do
  lines=$(muster logs tiny_cpu_endless 2> /dev/null | grep -c 'iteration' || true)
  [ "$lines" -lt 5 ] || break
  sleep 0.2
done
show muster ps
show muster logs tiny_cpu_endless --tail 1
if [ "$keep" = 1 ]; then
  finished=1
  cat <<TEXT

The job goes on. Now try, for example:
  export PATH=$BIN:\$PATH
  muster ps
  muster logs tiny_cpu_endless -f          (Ctrl-C ends the view, not the job)
  muster logs tiny_cpu_endless --rank 3 --tail 5
  muster nodes
  muster stop tiny_cpu_endless
and at last, to end the two worker daemons and the controller:
  kill ${workers[*]}; muster serve --stop
TEXT
  exit 0
fi

step "Stop it, and prove that nothing is left (muster stop)"
show muster stop tiny_cpu_endless --grace 10s | tee "$WORK/stop.log"
[ "$(grep -c ' clean ' "$WORK/stop.log")" = 2 ] || fail "not every node was reported clean"

step "What came of it"
grep 'baseline:' "$WORK/submit.log"
grep -q 'baseline: held-out.*below' "$WORK/submit.log" || fail "the held-out loss is not below the unigram entropy"
for rank in 0 1 2 3; do
  grep -qE "^ *\[? *$rank\]?.*iteration" "$WORK/submit.log" || fail "rank $rank printed nothing"
done
echo "logs: $(ls -d output/*_tiny_cpu | tail -n 1)/"
finished=1
