# Installing and building, shared by deploy/demo.sh, deploy/bundle.sh and tests/run.sh, which source this file:
#
#   install_packages SECTION…  packages of deploy/packages.txt that are missing, through apt; [nvrtc] too where NVRTC must be fetched
#   install_nvrtc              NVIDIA's compiler library into build/nvrtc, unless this machine has one
#   build PRESET [TARGET…]     configures and builds one preset of CMakePresets.json
#   prepare_programs           all three for the release preset; sets PROGRAMS to the folder of the programs
#
# FUSIOND_ROOT is the checkout, or the bundle that this file stands in; a bundle installs and builds nothing.
# Nothing here stops a caller for want of root, apt or a network: what is missing is printed with the line that
# installs it, and the build is tried with what is there. A second run changes nothing and takes seconds.
# shellcheck shell=bash

FUSIOND_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
[ -x "$FUSIOND_ROOT/fusiond" ] || FUSIOND_ROOT=$(dirname "$FUSIOND_ROOT")

# The wheel of the only CUDA part that compiling needs; 13.0 is the release of the drivers we test with.
NVRTC_WHEEL="nvidia-cuda-nvrtc==13.0.88"
NVRTC_WHEEL_SHA256="ad9b6d2ead2435f11cbb6868809d2adeeee302e9bb94bcf0539c7a40d80e8575"

say() { printf '== %s\n' "$*"; }
warn() { printf '!! %s\n' "$*" >&2; }

# packages_of SECTION: the names in that section of packages.txt, one a line.
packages_of() {
  awk -v section="[$1]" '
    { sub(/#.*/, ""); gsub(/[ \t]+/, "") }
    /^\[/ { inside = ($0 == section); next }
    inside && NF' "$FUSIOND_ROOT/deploy/packages.txt"
}

# missing_packages NAME…: those of the names that dpkg does not have installed, one a line.
missing_packages() {
  local name
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Abbrev}' "$name" 2>/dev/null | grep -q '^ii' || printf '%s\n' "$name"
  done
}

# can_be_root: root, or sudo, which asks for a password on the terminal itself, wherever input and output go.
can_be_root() {
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && { sudo -n true || : </dev/tty; } 2>/dev/null; }
}

# as_root COMMAND…: as can_be_root says.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# apt_install NAME…: fails where apt or the network does; its words go to build/apt.log.
apt_install() {
  mkdir -p "$FUSIOND_ROOT/build"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  { as_root "${apt[@]}" update &&
    as_root "${apt[@]}" install --no-install-recommends "$@"; } >"$FUSIOND_ROOT/build/apt.log" 2>&1 </dev/null
}

install_packages() {
  local section wanted=() missing sudo=''
  ! must_fetch_nvrtc || has_pip || set -- "$@" nvrtc
  for section in "$@"; do
    mapfile -t -O "${#wanted[@]}" wanted < <(packages_of "$section")
  done
  if ! command -v dpkg-query >/dev/null; then
    warn "this is neither Debian nor Ubuntu; going on, hoping for the equivalents of: ${wanted[*]}"
    return 0
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}" | sort -u)
  [ "${#missing[@]}" -gt 0 ] || return 0
  if command -v apt-get >/dev/null && can_be_root; then
    say "installing ${#missing[@]} packages: ${missing[*]}"
    apt_install "${missing[@]}" && return 0
    tail -n 3 "$FUSIOND_ROOT/build/apt.log" >&2 || true
  fi
  [ "$(id -u)" = 0 ] || ! command -v sudo >/dev/null || sudo='sudo '
  warn "${#missing[@]} packages are missing and could not be installed from here; install them as root:"
  printf '%s\n' "${sudo}apt-get update && ${sudo}apt-get install --no-install-recommends ${missing[*]}" >&2
  warn "going on with what is there"
}

# nvrtc_of_this_machine: prints where an installed libnvrtc was found; fails where there is none.
nvrtc_of_this_machine() {
  local folder library
  library=$({ ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | awk '/libnvrtc\.so\.1[23]/ && !found { found = $NF } END { print found }') || true
  [ -n "$library" ] && printf '%s\n' "$library" && return 0
  for folder in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda*; do
    [ -n "$folder" ] || continue
    for library in "$folder"/{lib64,lib,targets/x86_64-linux/lib}/libnvrtc.so.1[23]; do
      [ -e "$library" ] && printf '%s\n' "$library" && return 0
    done
  done
  while read -r folder; do
    for library in "$folder"/nvidia/{cu13,cuda_nvrtc}/lib/libnvrtc.so.1[23]; do
      [ -e "$library" ] && printf '%s\n' "$library" && return 0
    done
  done < <(python3 -c 'import sys; print(*[p for p in sys.path if p], sep="\n")' 2>/dev/null)
  return 1
}

# must_fetch_nvrtc: there is none, and the wheel would do.
must_fetch_nvrtc() {
  [ "$(uname -m)" = x86_64 ] && [ ! -e "$FUSIOND_ROOT/build/nvrtc/libnvrtc.so.13" ] && ! nvrtc_of_this_machine >/dev/null
}

# After install_packages, which installs pip where it is needed here.
install_nvrtc() {
  local target=$FUSIOND_ROOT/build/nvrtc found
  if found=$(nvrtc_of_this_machine); then
    say "NVRTC: $found"
    return 0
  fi
  if [ -e "$target/libnvrtc.so.13" ]; then
    say "NVRTC: $target/libnvrtc.so.13"
    return 0
  fi
  if ! must_fetch_nvrtc; then
    warn "no libnvrtc found, and the pinned wheel is for x86-64: CUDA kernels cannot be compiled here"
    return 0
  fi
  if has_pip; then
    say "NVRTC: no CUDA found; fetching $NVRTC_WHEEL (87 MB) into build/nvrtc"
    fetch_nvrtc "$target" && return 0
  fi
  warn "no libnvrtc found and none could be fetched: CUDA kernels cannot be compiled here"
  warn "install the CUDA toolkit, or run this again with pip installed and PyPI in reach; going on without"
}

has_pip() { python3 -m pip --version >/dev/null 2>&1; }

# fetch_nvrtc TARGET: the pinned wheel's two libraries, complete or not at all.
fetch_nvrtc() {
  local target=$1 work=$1.part
  rm -rf "$work"
  mkdir -p "$work"
  printf '%s --hash=sha256:%s\n' "$NVRTC_WHEEL" "$NVRTC_WHEEL_SHA256" >"$work/requirements.txt"
  python3 -m pip download -q --retries 1 --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --platform manylinux2014_x86_64 --dest "$work" -r "$work/requirements.txt" </dev/null || return 1
  python3 - "$work" <<'PYTHON' || return 1
import glob, os, shutil, sys, zipfile
work = sys.argv[1]
with zipfile.ZipFile(glob.glob(work + "/*.whl")[0]) as wheel:
    for member in wheel.namelist():
        name = os.path.basename(member)
        if name in ("libnvrtc.so.13", "libnvrtc-builtins.so.13.0"):
            with wheel.open(member) as source, open(os.path.join(work, name), "wb") as copy:
                shutil.copyfileobj(source, copy)
PYTHON
  [ -s "$work/libnvrtc.so.13" ] && [ -s "$work/libnvrtc-builtins.so.13.0" ] || return 1
  rm -f "$work"/*.whl "$work/requirements.txt"
  rm -rf "$target"
  mv "$work" "$target"
}

build() {
  local preset=$1 launcher=()
  shift
  if command -v ccache >/dev/null; then
    export CCACHE_BASEDIR=$FUSIOND_ROOT CCACHE_NOHASHDIR=1
    launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  (cd "$FUSIOND_ROOT" && cmake --preset "$preset" "${launcher[@]}" &&
    cmake --build "build/$preset" ${@:+--target "$@"}) </dev/null
}

# shellcheck disable=SC2034  # PROGRAMS is for the caller
prepare_programs() {
  if [ -x "$FUSIOND_ROOT/fusiond" ]; then
    PROGRAMS=$FUSIOND_ROOT
    return 0
  fi
  PROGRAMS=$FUSIOND_ROOT/build/release/bin
  mkdir -p "$FUSIOND_ROOT/build"
  install_packages run
  install_nvrtc
  say "building (log: build/release.log)"
  build release programs >"$FUSIOND_ROOT/build/release.log" 2>&1 && return 0
  tail -n 30 "$FUSIOND_ROOT/build/release.log" >&2
  warn "the build failed; if packages are missing above, they are the likely reason"
  return 1
}
