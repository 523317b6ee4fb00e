#!/usr/bin/env bash
# The rooms of this tree keep their order and link what they include, and the checker would notice if they did not.
set -euo pipefail
source_dir=$1
"$source_dir/scripts/check-rooms" "$source_dir/src"

house=$(mktemp -d)
trap 'rm -rf "$house"' EXIT
mkdir "$house/core" "$house/ops" "$house/train"
mend() {
  echo '#include "core/device.h"' >"$house/core/error.cpp"
  echo 'megalith_room(core SOURCES error.cpp LINKS fmt::fmt)' >"$house/core/CMakeLists.txt"
  echo '#include "core/error.h"' >"$house/ops/gemm.cpp"
  printf 'megalith_room(ops\n  SOURCES\n    gemm.cpp\n  LINKS megalith_core megalith_openblas)\n' >"$house/ops/CMakeLists.txt"
  printf '#include "core/error.h"\n#include "ops/gemm.h"\n' >"$house/train/trainer.cpp"
  printf 'megalith_room(train\n  SOURCES\n    trainer.cpp\n  LINKS\n    megalith_core\n    megalith_ops)\n' >"$house/train/CMakeLists.txt"
}
expect_report() {
  if report=$("$source_dir/scripts/check-rooms" "$house"); then
    echo "not noticed: $1"
    exit 1
  fi
  if [ "$(wc -l <<<"$report")" -ne 1 ] || ! grep -qF "$1" <<<"$report"; then
    printf 'expected: %s\nreported: %s\n' "$1" "$report"
    exit 1
  fi
  mend
}

mend
"$source_dir/scripts/check-rooms" "$house"

echo '#include "train/trainer.h"' >"$house/core/error.cpp"
echo 'megalith_room(core SOURCES error.cpp LINKS fmt::fmt megalith_train)' >"$house/core/CMakeLists.txt"
expect_report "room 'core' includes 'train', which stands below it"

echo '#include "cellar/wine.h"' >>"$house/ops/gemm.cpp"
expect_report "includes 'cellar', which is not a room of the house"

mkdir "$house/cellar"
expect_report "cellar: not a room of the house"
rmdir "$house/cellar"

sed -i /megalith_core/d "$house/train/CMakeLists.txt"
expect_report "room 'train' includes 'core' (trainer.cpp) but does not link megalith_core"

sed -i /ops/d "$house/train/trainer.cpp"
expect_report "room 'train' links megalith_ops but includes nothing of 'ops'"
