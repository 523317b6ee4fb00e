#pragma once

#include <span>
#include <string>
#include <string_view>

namespace megalith::config {

// A key of NeMo, Lightning or Megatron that Megalith does not implement.
//   ignored: it tunes another framework and cannot change the result.
//   refused: it would change the result, or where it goes; accepted only with a value that asks for what happens
//   anyway.
struct KnownKey {
  enum class Fate { ignored, refused };
  std::string_view pattern;  // a key, or a prefix and '*'; "a.*" also means "a"
  Fate fate;
  std::string_view reason;
  std::string_view harmless = "";  // values that are accepted, separated by '|'; null always is
};

std::span<const KnownKey> known_keys();

// An exact entry wins over a prefix, a longer prefix over a shorter one. nullptr: unknown.
const KnownKey* find_known(std::string_view path);

}  // namespace megalith::config
