#!/usr/bin/env bash
# Makes a folder that runs on another x86-64 Linux with this machine's glibc or newer, without root or packages:
#
#   bash deploy/bundle.sh [--with-tests] [FOLDER]      FOLDER is build/bundle unless named, and replaced if it exists
#
#   FOLDER/fusiond, fusionctl …   the programs, stripped; with --with-tests also the GPU tests and benchmarks
#   FOLDER/lib/                   every shared library they need except glibc's; found through DT_RPATH $ORIGIN/lib
#   FOLDER/demo.sh, lib.sh, tests/data/graphs/, with --with-tests also the other graphs that tests read
#   FOLDER/systemd/               the unit of the system service, and how to install it
#   FOLDER/COMMIT                 what it was made from
#
# NVRTC and the CUDA driver are not in it: they are opened at run time, and a GPU host has its own.
# Fails, leaving FOLDER as it was, where a library is not found or the size passes 30 MB (38 MB with --with-tests).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=deploy/lib.sh
. deploy/lib.sh

preset=release limit_mb=30
if [ "${1:-}" = --with-tests ]; then
  preset=gpu limit_mb=38
  shift
fi
bundle=${1:-build/bundle}

# glibc's own libraries, which always come from the host.
GLIBC='^(ld-linux-x86-64|libc|libm|libpthread|libdl|librt|libresolv|libutil|libanl|libnsl|libnss_[a-z]+)\.so\.'

fail() { warn "$*"; rm -rf "$work"; exit 1; }

# libraries_of FILE…: "name path" of every shared library they load but glibc's; the path is "not" where it is not found.
libraries_of() {
  ldd "$@" | awk -v glibc="$GLIBC" '$2 == "=>" && $1 !~ glibc { print $1, $3 }' | sort -u
}

if [ "$preset" = release ]; then
  prepare_programs
else
  install_packages run test
  say "building the gpu preset (log: build/gpu.log)"
  mkdir -p build
  build gpu programs gpu_programs >build/gpu.log 2>&1 || { tail -n 30 build/gpu.log; exit 1; }
  PROGRAMS=build/gpu/bin
fi

work=$bundle.part
rm -rf "$work"
mkdir -p "$work/lib"
shopt -s nullglob
programs=("$PROGRAMS"/*)
[ "$preset" = release ] || programs+=(build/gpu/gpu/*)
[ "${#programs[@]}" -gt 0 ] || fail "$PROGRAMS holds no programs"
for program in "${programs[@]}"; do
  strip -o "$work/$(basename "$program")" "$program"
done
while read -r name path; do
  [ -e "$path" ] || fail "$name: not found on this machine"
  strip --strip-unneeded -o "$work/lib/$name" "$(readlink -f "$path")"
done < <(libraries_of "${programs[@]}")
cp deploy/lib.sh "$work/"
git describe --match= --always --abbrev=40 --dirty >"$work/COMMIT" 2>/dev/null || echo unknown >"$work/COMMIT"
cp deploy/demo.sh "$work/"
cp -r deploy/systemd "$work/"
mkdir -p "$work/tests/data"
cp -r tests/data/graphs "$work/tests/data/"
[ "$preset" = release ] || cp -r tests/data/kernel_counts "$work/tests/data/"

# Held against the finished folder: nothing but glibc comes from outside it, also for the libraries' own needs.
outside=$(libraries_of "${programs[@]/#*\//$work/}" | awk -v inside="$(realpath "$work")/" 'index($2, inside) != 1')
[ -z "$outside" ] || fail "these would come from the host: $outside"
size_mb=$(du -sm --apparent-size "$work" | cut -f1)
[ "$size_mb" -le "$limit_mb" ] || fail "$size_mb MB, more than $limit_mb MB allowed: $(du -a --apparent-size -k "$work" | sort -rn | sed -n '2,6p')"

rm -rf "$bundle"
mv "$work" "$bundle"
glibc=$(objdump -T "$bundle"/lib/* "${programs[@]/#*\//$bundle/}" 2>/dev/null | grep -o 'GLIBC_2\.[0-9]*' | sort -uV | tail -n 1)
say "$bundle: $size_mb MB, ${#programs[@]} programs, $(find "$bundle/lib" -type f | wc -l) libraries; needs ${glibc/_/ } or newer"
