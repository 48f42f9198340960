# shellcheck shell=bash disable=SC2034
# The Debian packages that dlbench needs, by what for; the one list that every script installs from.
# Sourced by quickstart, test and dev; it defines names and functions and does nothing by itself.

build_packages=(
  g++ cmake ninja-build
  libopenblas-pthread-dev    # BLAS of the CPU backend; the pthread variant, see src/cpu/README.md
  libtbb-dev                 # oneTBB
  libbenchmark-dev           # Google Benchmark, drives the timed loops
  libcli11-dev nlohmann-json3-dev libfmt-dev
  libvalijson-dev            # JSON Schema validation
  libboost-math-dev          # quantiles of Student's t and the normal distribution
)
test_packages=(
  libgtest-dev libgmock-dev
  libboost-context-dev       # fibres of the CUDA emulation
  python3 python3-jsonschema # tests/cli, scripts/checks, a second validator of result files
  python3-torch              # tests/pytorch: the outside oracle of training steps
  groff-base                 # the man page is read by groff without a warning
)
develop_packages=(git clang-format shellcheck debootstrap)

say() { printf '\n== %s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# CPUs that this process may use.
jobs_here() { nproc; }

# as_root COMMAND...: with sudo where this isn't root.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "installing packages needs root, and there is no sudo here; as root, run: $*"
  fi
}

# install_packages PACKAGE...: installs those that are missing, without a question.
install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "This isn't Debian or Ubuntu (no apt-get), so nothing is installed. dlbench needs the development files that"
    echo "these Debian packages hold; the configuration below names the first one that is missing: $*"
    return
  fi
  local package missing=()
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    echo "All $# packages are installed."
    return
  fi
  echo "Installing: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]}. dlbench needs Debian 12, Ubuntu 24.04 or newer for these packages"
}

# find_cuda: puts nvcc of a CUDA toolkit on the PATH; false when there is none that dlbench can use.
find_cuda() {
  local folder version
  for folder in "${CUDA_PATH:-}" "${CUDA_HOME:-}" /usr/local/cuda; do
    if ! command -v nvcc >/dev/null && [ -n "$folder" ] && [ -x "$folder/bin/nvcc" ]; then
      export PATH="$folder/bin:$PATH"
    fi
  done
  command -v nvcc >/dev/null || { cuda_sentence="no CUDA toolkit here (nvcc isn't on the PATH or in /usr/local/cuda)"; return 1; }
  version=$(nvcc --version | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
  if [ "$(printf '%s\n12.4\n' "$version" | sort -V | head -n 1)" != 12.4 ]; then
    cuda_sentence="the CUDA toolkit here is $version; the GPU backend needs 12.4 or newer"
    return 1
  fi
  cuda_sentence="CUDA toolkit $version ($(command -v nvcc))"
}
