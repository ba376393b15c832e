#!/usr/bin/env bash
# Tests and measures a bundle on a GPU host:
#
#   bash tests/bench/run_gpu.sh BUNDLE_DIR OUT_DIR
#
#   BUNDLE_DIR   made by deploy/bundle.sh --with-tests
#   OUT_DIR      gets PROGRAM.json and PROGRAM.log of each benchmark, TEST.log and TEST.xml of each GPU test, summary.txt
#
# One program's failure stops no other; the exit status is 1 if any failed. Then, where the repository is:
# tests/bench/collect.py OUT_DIR. FUSIOND_RUN_ONLY='kernels_benchmark gpu_test' runs those alone.
set -uo pipefail
[ $# = 2 ] || { echo "usage: run_gpu.sh BUNDLE_DIR OUT_DIR" >&2; exit 2; }
mkdir -p "$2" || exit 2
bundle=$(cd "$1" && pwd) || exit 2
out=$(cd "$2" && pwd)
cd "$bundle" || exit 2  # programs read tests/data from there

# CUPTI and NVRTC of an installation that the loader does not know.
for folder in "${CUDA_HOME:-/usr/local/cuda}"/{lib64,extras/CUPTI/lib64,lib}; do
  [ ! -d "$folder" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
done
export LD_LIBRARY_PATH

# No commas: they part the pairs of --benchmark_context.
plain() { tr ',\n' '  ' | sed 's/  */ /g; s/^ //; s/ $//'; }
commit=$(cat COMMIT 2>/dev/null || echo unknown)
driver=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | plain)
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | plain)
cuda=$(nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p')
host=$( (sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1; echo "$(nproc) cores Linux $(uname -r)") | plain)
context="commit=$commit,driver=${driver:-none},gpu=${gpu:-none},cuda=${cuda:-none},host=$host"

status=0
: >"$out/summary.txt"
say() { printf '%s\n' "$*" | tee -a "$out/summary.txt"; }

# run NAME LIMIT_S COMMAND…: to its end or its time limit, whatever comes of it.
run() {
  local name=$1 limit_s=$2 start=$SECONDS code=0
  shift 2
  case " ${FUSIOND_RUN_ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
  if [ ! -x "$bundle/$name" ]; then
    say "$name: not in the bundle"
    status=1
    return 0
  fi
  timeout --kill-after=10 "$limit_s" "$@" >"$out/$name.log" 2>&1 </dev/null || code=$?
  [ "$code" = 0 ] || status=1
  say "$name: $([ "$code" = 0 ] && echo ok || echo "FAILED with status $code"), $((SECONDS - start)) s"
  [ "$code" = 0 ] || tail -n 20 "$out/$name.log"
}

benchmark() {
  run "$1" "$2" "$bundle/$1" --benchmark_format=console --benchmark_out_format=json --benchmark_out="$out/$1.json" \
    --benchmark_context="$context"
  [ ! -e "$out/$1.log" ] || grep -E 'ERROR|^(kernel|launch|compile|rpc)/' "$out/$1.log" | cut -c1-220 | tee -a "$out/summary.txt"
}
gpu_test() {
  run gpu_test "$1" "$bundle/gpu_test" --gtest_output="xml:$out/gpu_test.xml" --gtest_brief=1
  [ ! -e "$out/gpu_test.log" ] || grep -E '^\[  (PASSED|FAILED|SKIPPED)|random graphs' "$out/gpu_test.log" | cut -c1-220 | tee -a "$out/summary.txt"
}

say "commit $commit, ${gpu:-no GPU}, driver ${driver:-none}, $host"
benchmark kernels_benchmark 240
benchmark launch_benchmark 60
benchmark compile_benchmark 90
benchmark ring_benchmark 60
gpu_test 240
exit "$status"
