#!/usr/bin/env bash
# The rooms of this tree keep their order, and the checker would notice if they did not.
set -euo pipefail
source_dir=$1
"$source_dir/scripts/check-rooms" "$source_dir/src"

broken=$(mktemp -d)
trap 'rm -rf "$broken"' EXIT
mkdir "$broken/core" "$broken/train"
echo '#include "train/trainer.h"' >"$broken/core/error.cpp"
echo '#include "core/error.h"' >"$broken/train/trainer.cpp"
if report=$("$source_dir/scripts/check-rooms" "$broken"); then
  echo "a room that includes one below it was not noticed"
  exit 1
fi
grep -q "room 'core' includes 'train'" <<<"$report"
[ "$(wc -l <<<"$report")" -eq 1 ]
