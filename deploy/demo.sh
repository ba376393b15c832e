#!/usr/bin/env bash
# Shows the main job: compile RMSNorm forward and two definitions of its backward, restart the daemon after
# kill -9 and get the same kernels from disk, launch them from another process, check the results.
#
#   bash deploy/demo.sh
#
# Builds first what is missing (lib.sh); beside the programs of a bundle it only runs. Works with and without a GPU.
# The last line is "demo passed"; otherwise the exit code is not 0 and the reason is said.
set -euo pipefail
# shellcheck source=deploy/lib.sh
. "$(dirname "$0")/lib.sh"

GRAPHS=$FUSIOND_ROOT/tests/data/graphs
daemon='' work=''

cleanup() {
  [ -z "$daemon" ] || { kill -9 "$daemon" && wait "$daemon"; } 2>/dev/null || true
  [ -z "$work" ] || rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

fail() {
  [ ! -s "$work/log" ] || { warn "the daemon's last words:" && tail -n 5 "$work/log" >&2; }
  warn "demo failed: $*"
  exit 1
}

ctl() { "$PROGRAMS/fusionctl" --sockets "$work/run" "$@"; }

# start_daemon OPTION…: sets `daemon` to its process once it has found what there is and serves.
start_daemon() {
  "$PROGRAMS/fusiond" --sockets "$work/run" --state "$work/state" "$@" >>"$work/log" 2>&1 &
  daemon=$!
  until ctl status >"$work/status" 2>&1 && grep -q SERVING "$work/status"; do
    kill -0 "$daemon" 2>/dev/null || fail "the daemon ended at its start"
  done
}

# stop_daemon SIGNAL: sets `ended` to its exit status.
stop_daemon() {
  kill "-$1" "$daemon"
  ended=0
  wait "$daemon" 2>/dev/null || ended=$?
  daemon=''
}

# compile GRAPH TARGET RESULT: into the file RESULT, as `fusionctl compile` prints it.
compile() {
  local extents=()
  [ "$1" != rms_norm_backward_manual ] || extents=(--extents 2048x8192,2048x1,2048x8192,8192)
  ctl compile "$GRAPHS/$1.fir" --target "$2" "${extents[@]}" >"$3" 2>"$3.error" ||
    fail "compiling $1 for $2: $(cat "$3.error")"
}

# field NAME RESULT: its value, for `schedule` all of its lines.
field() { sed -n "s/^$1 \{1,\}//p" "$2"; }

prepare_programs || { warn "demo failed: there are no programs to run"; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/fusiond-demo.XXXXXX")
start=$SECONDS

if ! nvrtc=$(nvrtc_of_this_machine); then
  nvrtc=$FUSIOND_ROOT/build/nvrtc/libnvrtc.so.13
  [ -e "$nvrtc" ] || fail "there is no NVRTC, without which no CUDA kernel can be compiled; see above"
fi

say "1. A daemon with an empty cache"
start_daemon --nvrtc "$nvrtc" --nvrtc-any-owner
first=$daemon
echo "   process $first, NVRTC $(field NVRTC "$work/status")"
ctl devices >"$work/devices" || fail "it lists no devices"
gpu=$(awk '/^GPU-/ && !/NOT USABLE/ { print $1; exit }' "$work/devices")
if [ -n "$gpu" ]; then
  echo "   GPU: $(grep "^$gpu" "$work/devices")"
  targets=("$gpu") device=$gpu
else
  echo "   no GPU here: kernels are compiled for Hopper (sm_90a) and Ada (sm_89) as they are for a GPU that is present;"
  echo "   what is launched is the same graphs compiled for the CPU device, through the same channel"
  targets=(sm_90a sm_89 cpu) device=cpu
fi

say "2. Compile RMSNorm forward and backward, 2048x8192 bf16"
echo "   'thunder' and 'manual' are the same backward written twice: one is given 1/rms, the other rms"
graphs=(rms_norm_forward rms_norm_backward_thunder rms_norm_backward_manual)
for target in "${targets[@]}"; do
  for graph in "${graphs[@]}"; do
    result=$work/$graph.$target
    compile "$graph" "$target" "$result"
    [ "$(field source "$result")" = compiled ] || fail "$graph for $target came from $(field source "$result"), not from a compile"
    echo "   $graph for $target: cold, $(field time "$result")"
    echo "      key $(field key "$result")"
    [ "$target" != cpu ] || continue
    echo "      $(field 'CUDA text' "$result") of CUDA C++ became $(field cubin "$result") of GPU code"
    field schedule "$result" | sed 's/^/      schedule: /'
  done
  [ "$target" != cpu ] || continue
  # One line a kernel; the definitions name their outputs in different order.
  diff <(field schedule "$work/rms_norm_backward_thunder.$target" | sort) \
    <(field schedule "$work/rms_norm_backward_manual.$target" | sort) >"$work/difference" ||
    fail "the two backward definitions got different schedules for $target: $(cat "$work/difference")"
  echo "   both backward definitions got the same schedule for $target"
done

say "3. kill -9, and a new daemon on the same cache that has no NVRTC"
stop_daemon KILL
start_daemon --nvrtc "$work/nowhere/libnvrtc.so.13"
[ "$daemon" != "$first" ] || fail "the process is still $first"
echo "   process $daemon; $(grep '^degraded' "$work/status" | sed 's/^degraded *//')"
for target in "${targets[@]}"; do
  for graph in "${graphs[@]}"; do
    result=$work/$graph.$target
    compile "$graph" "$target" "$result.again"
    source=$(field source "$result.again")
    [ "$source" = disk ] || fail "$graph for $target came from $source, not from disk"
    [ "$(field key "$result")" = "$(field key "$result.again")" ] || fail "$graph for $target has another key now"
    echo "   $graph for $target: from disk in $(field time "$result.again")"
  done
done

say "4. Launch them from another process, and compare with double-precision loops written in it"
"$PROGRAMS/rms_norm" "$work/run" "$GRAPHS" "$device" || fail "results of the launches are wrong, or there are none; see above"

say "5. Stop"
stop_daemon TERM
[ "$ended" = 0 ] || fail "the daemon ended with status $ended"
echo "   the daemon ended by itself; $((SECONDS - start)) s in all"
echo "demo passed"
