#include "observe/draw/palette.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace megalith::observe {

namespace {

constexpr Ink kPalette[] = {
    {"page", 0xf5f6f8, 0x0e1114},
    {"card", 0xffffff, 0x171b20},
    {"text", 0x1b1f24, 0xe8eaed},
    {"muted", 0x5b6470, 0x9aa4af},
    {"grid", 0xe3e6ea, 0x2a3037},
    // Curves.
    {"train", 0x2563eb, 0x7aa7ff},
    {"validation", 0xd9480f, 0xff9f6b},
    {"time", 0x0f766e, 0x4fd1c0},
    {"speed", 0x7c3aed, 0xb794ff},
    {"memory", 0x0369a1, 0x56b6e9},
    {"alarm", 0xc81e1e, 0xff8080},
    // Runs laid over each other; told apart by colour-blind readers too (after Okabe and Ito).
    {"run0", 0x0072b2, 0x56b4e9},
    {"run1", 0xd55e00, 0xff9a4d},
    {"run2", 0x008f68, 0x3ddbb0},
    {"run3", 0xb04a86, 0xe79ac8},
    {"run4", 0x8a6d00, 0xf0e442},
    {"run5", 0x4b4f9c, 0xa6abff},
    // What wall time went into.
    {"use-productive", 0x2e9e5b, 0x43c17a},
    {"use-slowdown", 0xa3c644, 0xb6d957},
    {"use-wasted", 0xc81e1e, 0xff6b6b},
    {"use-save", 0x2563eb, 0x6c9bff},
    {"use-load", 0x67a3f2, 0xa9c8ff},
    {"use-validation", 0x9a5bd0, 0xc79cf2},
    {"use-detection", 0xe06aa8, 0xf59ac9},
    {"use-decision", 0xb5838d, 0xd9aab3},
    {"use-teardown", 0x8d5524, 0xc98f5e},
    {"use-check", 0x6b7f2a, 0xa9bd63},
    {"use-waiting", 0x5f6f8f, 0x9fb0d0},
    {"use-restart", 0xd9480f, 0xff9f6b},
    {"use-startup", 0xe0a100, 0xf2c14b},
    {"use-data", 0x0f9aa8, 0x4fd1dc},
    {"use-planned", 0x8b7bd8, 0xb3a6f5},
    {"use-unknown", 0x9aa4af, 0x5f6873},
    // What the time of a planned step goes into.
    {"part-compute", 0x2e9e5b, 0x43c17a},
    {"part-recompute", 0xa3c644, 0xb6d957},
    {"part-tensor", 0x2563eb, 0x6c9bff},
    {"part-context", 0x67a3f2, 0xa9c8ff},
    {"part-imbalance", 0xe06aa8, 0xf59ac9},
    {"part-bubble", 0xc81e1e, 0xff6b6b},
    {"part-messages", 0x9a5bd0, 0xc79cf2},
    {"part-data", 0x0f9aa8, 0x4fd1dc},
    {"part-optimizer", 0xe0a100, 0xf2c14b},
    {"part-host", 0xd9480f, 0xff9f6b},
    {"part-jitter", 0x9aa4af, 0x5f6873},
};

constexpr std::string_view kRuns[] = {"run0", "run1", "run2", "run3", "run4", "run5"};

}  // namespace

const Ink& ink_named(std::string_view name) {
  const auto found =
      std::find_if(std::begin(kPalette), std::end(kPalette), [&](const Ink& ink) { return ink.name == name; });
  MEGALITH_CHECK(found != std::end(kPalette), "the palette has no ink '{}'", name);
  return *found;
}

std::string_view ink_of_run(size_t index) {
  return kRuns[index % std::size(kRuns)];
}

std::string css_variables(bool dark) {
  std::string css;
  for (const Ink& ink : kPalette) css += fmt::format("--{}:#{:06x};", ink.name, dark ? ink.dark : ink.light);
  return css;
}

}  // namespace megalith::observe
