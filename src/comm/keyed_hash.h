#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace megalith::comm {

using HashBytes = std::array<uint8_t, 32>;

// BLAKE2s (RFC 7693) of `text` under `key`: what only somebody who knows the key can say about the text. A key of more
// than 32 bytes is hashed first; an empty one gives the plain hash.
HashBytes keyed_hash(std::string_view key, std::string_view text);

// Takes the same time wherever two texts of one length differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

// From the kernel's generator.
std::string random_bytes(size_t count);

}  // namespace megalith::comm
