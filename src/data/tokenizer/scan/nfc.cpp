#include "data/tokenizer/scan/nfc.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "data/tokenizer/scan/unicode_classes.h"
#include "data/utf8.h"

namespace megalith::data {

namespace {
constexpr uint8_t kSuspect = 8;  // bit of packed_class

struct Hangul {
  static constexpr uint32_t kSyllables = 0xAC00, kLead = 0x1100, kVowel = 0x1161, kTail = 0x11A7;
  static constexpr uint32_t kLeads = 19, kVowels = 21, kTails = 28, kCount = kLeads * kVowels * kTails;
};

struct Part {
  uint32_t code;
  uint8_t order;  // canonical combining class
};

uint8_t combining_order(uint32_t code) {
  const auto* const at = std::lower_bound(std::begin(unicode::kCombining), std::end(unicode::kCombining), code,
                                          [](const unicode::Combining& c, uint32_t wanted) { return c.code < wanted; });
  return at != std::end(unicode::kCombining) && at->code == code ? at->order : 0;
}

void append_decomposed(std::vector<Part>& parts, uint32_t code) {
  if (code - Hangul::kSyllables < Hangul::kCount) {
    const uint32_t index = code - Hangul::kSyllables;
    parts.push_back({Hangul::kLead + index / (Hangul::kVowels * Hangul::kTails), 0});
    parts.push_back({Hangul::kVowel + index / Hangul::kTails % Hangul::kVowels, 0});
    if (index % Hangul::kTails != 0) parts.push_back({Hangul::kTail + index % Hangul::kTails, 0});
    return;
  }
  const auto* const at =
      std::lower_bound(std::begin(unicode::kDecompositions), std::end(unicode::kDecompositions), code,
                       [](const unicode::Decomposition& d, uint32_t wanted) { return d.code < wanted; });
  if (at == std::end(unicode::kDecompositions) || at->code != code) {
    parts.push_back({code, combining_order(code)});
    return;
  }
  for (uint32_t i = 0; i < at->count; ++i) {
    const uint32_t part = unicode::kDecompositionParts[at->first + i];
    parts.push_back({part, combining_order(part)});
  }
}

// 0: the two do not compose.
uint32_t composed(uint32_t first, uint32_t second) {
  if (first - Hangul::kLead < Hangul::kLeads && second - Hangul::kVowel < Hangul::kVowels) {
    return Hangul::kSyllables +
           ((first - Hangul::kLead) * Hangul::kVowels + (second - Hangul::kVowel)) * Hangul::kTails;
  }
  const bool open_syllable =
      first - Hangul::kSyllables < Hangul::kCount && (first - Hangul::kSyllables) % Hangul::kTails == 0;
  if (open_syllable && second - Hangul::kTail - 1 < Hangul::kTails - 1) return first + (second - Hangul::kTail);
  const auto wanted = std::pair(first, second);
  const auto* const at = std::lower_bound(std::begin(unicode::kCompositions), std::end(unicode::kCompositions), wanted,
                                          [](const unicode::Composition& c, const std::pair<uint32_t, uint32_t>& pair) {
                                            return std::pair(c.first, c.second) < pair;
                                          });
  const bool found = at != std::end(unicode::kCompositions) && std::pair(at->first, at->second) == wanted;
  return found ? at->composed : 0;
}

void sort_marks(std::vector<Part>& parts) {
  for (auto at = parts.begin(); at != parts.end();) {
    const auto begin = std::find_if(at, parts.end(), [](const Part& part) { return part.order != 0; });
    at = std::find_if(begin, parts.end(), [](const Part& part) { return part.order == 0; });
    std::stable_sort(begin, at, [](const Part& a, const Part& b) { return a.order < b.order; });
  }
}

// Each part joins the last starter if nothing of its own class or higher stands between them.
void compose(std::vector<Part>& parts) {
  size_t kept = 0;
  size_t starter = parts.size();  // none yet
  for (const Part& part : std::vector<Part>(parts)) {
    if (starter < kept) {
      const bool adjacent = kept == starter + 1;
      const bool blocked = !adjacent && (parts[kept - 1].order == 0 || parts[kept - 1].order >= part.order);
      const uint32_t joined = blocked ? 0 : composed(parts[starter].code, part.code);
      if (joined != 0) {
        parts[starter].code = joined;
        continue;
      }
    }
    if (part.order == 0) starter = kept;
    parts[kept++] = part;
  }
  parts.resize(kept);
}
// Behind the whole words of ASCII that begin at `at`.
const char* skip_ascii(const char* at, const char* end) {
  for (uint64_t word = 0; end - at >= static_cast<std::ptrdiff_t>(sizeof word); at += sizeof word) {
    std::memcpy(&word, at, sizeof word);
    if (word & 0x8080808080808080u) break;
  }
  return at;
}
}  // namespace

std::string_view normalize_nfc(std::string_view text, std::string& storage) {
  const char* const end = text.data() + text.size();
  const char* copied = text.data();   // what of the text is in the storage
  const char* starter = text.data();  // the last character that nothing before it can change
  std::vector<Part> parts;
  bool changed = false;
  for (const char* at = text.data(); at < end;) {
    if (const char* const other = skip_ascii(at, end); other > at) {
      starter = other - 1;
      at = other;
      continue;
    }
    const CodePoint point = decode_utf8(at, end);
    if (!point.valid || !(unicode::packed_class(point.code) & kSuspect)) {
      starter = at;
      at += point.length;
      continue;
    }
    // From that character up to the next of its kind is what NFC looks at as a whole.
    const CodePoint first = decode_utf8(starter, end);
    if (!first.valid) starter += first.length;
    if (!changed) storage.clear();
    changed = true;
    storage.append(copied, starter);
    parts.clear();
    for (at = starter; at < end;) {
      const CodePoint next = decode_utf8(at, end);
      if (!next.valid || (at != starter && !(unicode::packed_class(next.code) & kSuspect))) break;
      append_decomposed(parts, next.code);
      at += next.length;
    }
    sort_marks(parts);
    compose(parts);
    for (const Part& part : parts) append_utf8(storage, part.code);
    copied = starter = at;
  }
  if (!changed) return text;
  storage.append(copied, end);
  return storage;
}

size_t last_nfc_boundary(std::string_view text, size_t from) {
  const char* const end = text.data() + text.size();
  for (size_t at = text.size(); at > std::max<size_t>(from, 1);) {
    const CodePoint point = decode_utf8(text.data() + --at, end);
    if (point.valid && !(unicode::packed_class(point.code) & kSuspect)) return at;
  }
  return 0;
}

}  // namespace megalith::data
