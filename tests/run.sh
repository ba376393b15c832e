#!/usr/bin/env bash
# Installs what the tests need, builds, and tests everything; ends with ctest's summary, whose exit status is this one's.
#
#   bash tests/run.sh            what every change must pass (about 25 minutes on two cores at most, from nothing)
#   bash tests/run.sh --nightly  the same, and what takes longer: slow tests, full matrices, fuzzing, clang-tidy
#
# Each stage writes build/ci/STAGE.log and becomes one test of the last ctest run, so that no failure hides behind a later success.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/lib.sh
. deploy/lib.sh

trap 'exit 130' INT TERM  # a stage that was interrupted has not failed; the run ends

nightly=
case "${1:-}" in
  "") ;;
  --nightly) nightly=1 ;;
  *) echo "usage: tests/run.sh [--nightly]" >&2; exit 2 ;;
esac

ci=$FUSIOND_ROOT/build/ci
rm -rf "$ci"
mkdir -p "$ci"
# The last ctest run: everything of the asan build, and one test for each stage.
printf 'subdirs("%s/build/asan")\n' "$FUSIOND_ROOT" >"$ci/CTestTestfile.cmake"

# stage NAME COMMAND…: runs it, prints its time, and records its outcome; never ends the run.
stage() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$ci/$name.log" 2>&1 </dev/null || status=$?
  printf '== %-16s %5d s  %s\n' "$name" $((SECONDS - start)) "$([ "$status" = 0 ] && echo ok || echo "FAILED, status $status")"
  [ "$status" = 0 ] || tail -n 40 "$ci/$name.log"
  printf 'add_test([=[stage_%s]=] "/bin/sh" "-c" "tail -n 200 %s; exit %d")\n' \
    "$name" "'$ci/$name.log'" "$status" >>"$ci/CTestTestfile.cmake"
}

test_tsan() {
  ctest --test-dir build/tsan -L tsan -LE 'gpu|slow' -j "$(nproc)" --timeout 600 --output-on-failure --no-tests=error
}

# Our sources only; generated code and headers of others are not ours to judge.
tidy() {
  run-clang-tidy-14 -quiet -p build/asan "^$FUSIOND_ROOT/(runtime|compiler|server|client|tests)/.*\.cc$"
}

# Each fuzz target for a minute, from its corpus; what it finds stays in build/fuzz/found.
fuzz() {
  local target corpus found
  build fuzz fuzzers || return 1
  while read -r target corpus; do
    found=$FUSIOND_ROOT/build/fuzz/found/$(basename "$target")
    mkdir -p "$found"
    "$target" -max_total_time=60 -artifact_prefix="$found/crash-" "$found" "$corpus" || return 1
  done < <(ctest --test-dir build/fuzz -L fuzz -N -V | awk '/Test command:/ { gsub(/"/, ""); print $(NF - 2), $NF }')
}

say "packages and NVRTC"
install_packages run test ${nightly:+nightly}
install_nvrtc
command -v ctest >/dev/null || { warn "no ctest: nothing can be tested"; exit 1; }

[ -z "$nightly" ] || say "nightly: all cases of tests that sample theirs, tests labelled slow, clang-tidy, a minute of each fuzz target"
say "logs of the stages: build/ci"
stage build-asan build asan
stage build-tsan build tsan tsan_tests
stage test-tsan test_tsan
stage build-release build release
[ ! -d build/release/bin ] || stage bundle bash deploy/bundle.sh build/ci/bundle
if [ -n "$nightly" ]; then
  export FUSIOND_NIGHTLY=1  # tests that sample their cases take all of them
  stage clang-tidy tidy
  stage fuzz fuzz
fi

say "everything under AddressSanitizer and UndefinedBehaviorSanitizer, lints, and the stages above"
[ -n "$nightly" ] && selection=(--timeout 3600) || selection=(-LE slow --timeout 600)
exec ctest --test-dir "$ci" "${selection[@]}" -j "$(nproc)" --output-on-failure --no-tests=error
