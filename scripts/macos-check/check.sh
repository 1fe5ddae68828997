#!/usr/bin/env bash
# Type-checks and lints the whole workspace, tests included, for macOS.
# On a Mac with the system's own tools; on Debian with Debian's rustc-web (which brings the sources of the standard
# library) and zig (a C compiler that carries macOS' libc headers). ZIG names zig's executable there.
# It proves that the macOS code compiles, not that it links or runs.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
target=aarch64-apple-darwin
checks=(--locked --workspace --all-targets --features perch-app/custom-protocol --target "$target")

if [ "$(uname)" = Darwin ]; then
  exec cargo clippy "${checks[@]}" -- -D warnings
fi

: "${ZIG:?is the path of zig}"
# rustup's proxies must not be found: the standard library below fits Debian's compiler alone.
export PATH=/usr/bin:/bin
unset RUSTUP_TOOLCHAIN
export CARGO_TARGET_DIR=$root/target/macos

# The standard library for macOS, built once for each version of the compiler.
version=$(dpkg-query -W -f='${Version}' rustc-web | tr -c 'A-Za-z0-9.\n' -)
sysroot=$root/.cache/macos/sysroot-$version
if [ ! -d "$sysroot" ]; then
  echo "Building Rust's standard library for macOS (once, about three minutes)…"
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/src"
  touch "$work/src/lib.rs"
  printf '[package]\nname = "empty"\nversion = "0.0.0"\nedition = "2024"\n' > "$work/Cargo.toml"
  # Cargo builds the standard library only where unstable features are let in.
  (cd "$work" && RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$work/target /usr/bin/cargo check --quiet --release \
    -Zbuild-std=std,panic_abort,panic_unwind,proc_macro,test --target "$target")
  made=$sysroot.partial/lib/rustlib/$target/lib
  rm -rf "$sysroot.partial"
  mkdir -p "$made"
  cp "$work/target/$target/release/deps/"*.rlib "$made/"
  mv "$sysroot.partial" "$sysroot"
fi

# C in build scripts goes through zig.
tools=$root/.cache/macos/tools
mkdir -p "$tools/sdk"
for tool in zcc zcxx zar zranlib; do ln -sf "$root/scripts/macos-check/zig-darwin.py" "$tools/$tool"; done
export ZIG ZIG_GLOBAL_CACHE_DIR=$root/.cache/macos/zig ZIG_LOCAL_CACHE_DIR=$root/.cache/macos/zig
export SDKROOT=$tools/sdk
export CC_aarch64_apple_darwin=$tools/zcc CXX_aarch64_apple_darwin=$tools/zcxx
export AR_aarch64_apple_darwin=$tools/zar RANLIB_aarch64_apple_darwin=$tools/zranlib
export CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS="--sysroot=$sysroot"

# Clippy checks types as well. `cargo clippy` would look for rustup's first.
CARGO=/usr/bin/cargo /usr/bin/cargo-clippy clippy "${checks[@]}" -- -D warnings
