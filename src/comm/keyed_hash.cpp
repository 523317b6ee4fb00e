#include "comm/keyed_hash.h"

#include <sys/random.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"

namespace megalith::comm {

namespace {
using State = std::array<uint32_t, 8>;
constexpr size_t kBlock = 64;

constexpr State kStart = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

constexpr uint8_t kSchedule[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

// Columns, then diagonals, of the 4 x 4 working state.
constexpr uint8_t kQuarters[8][4] = {{0, 4, 8, 12},  {1, 5, 9, 13},  {2, 6, 10, 14}, {3, 7, 11, 15},
                                     {0, 5, 10, 15}, {1, 6, 11, 12}, {2, 7, 8, 13},  {3, 4, 9, 14}};

void mix(std::array<uint32_t, 16>& v, const uint8_t (&at)[4], uint32_t x, uint32_t y) {
  const auto [a, b, c, d] = at;
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

void take_block(State& state, const std::array<uint8_t, kBlock>& block, uint64_t bytes_so_far, bool last) {
  std::array<uint32_t, 16> words;
  std::memcpy(words.data(), block.data(), kBlock);
  std::array<uint32_t, 16> v;
  std::copy(state.begin(), state.end(), v.begin());
  std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
  v[12] ^= static_cast<uint32_t>(bytes_so_far);
  v[13] ^= static_cast<uint32_t>(bytes_so_far >> 32);
  if (last) v[14] = ~v[14];
  for (const auto& order : kSchedule) {
    for (size_t i = 0; i < 8; ++i) mix(v, kQuarters[i], words[order[2 * i]], words[order[2 * i + 1]]);
  }
  for (size_t i = 0; i < 8; ++i) state[i] ^= v[i] ^ v[i + 8];
}

std::string_view as_text(const HashBytes& hash) {
  return {reinterpret_cast<const char*>(hash.data()), hash.size()};
}
}  // namespace

HashBytes keyed_hash(std::string_view key, std::string_view text) {
  if (key.size() > sizeof(HashBytes)) {
    const HashBytes shorter = keyed_hash({}, key);
    return keyed_hash(as_text(shorter), text);
  }
  State state = kStart;
  state[0] ^= 0x01010000U ^ static_cast<uint32_t>(key.size()) << 8 ^ static_cast<uint32_t>(sizeof(HashBytes));
  std::string input;
  if (!key.empty()) input = std::string(key) + std::string(kBlock - key.size(), '\0');
  input += text;
  size_t taken = 0;
  do {
    std::array<uint8_t, kBlock> block{};
    const size_t count = std::min(kBlock, input.size() - taken);
    std::memcpy(block.data(), input.data() + taken, count);
    taken += count;
    take_block(state, block, taken, taken == input.size());
  } while (taken < input.size());
  HashBytes hash;
  std::memcpy(hash.data(), state.data(), hash.size());
  return hash;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return difference == 0;
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) io_error_errno("asking for random bytes");
  return bytes;
}

}  // namespace megalith::comm
