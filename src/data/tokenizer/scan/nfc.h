#pragma once

#include <string>
#include <string_view>

namespace megalith::data {

// Unicode normalisation form C (UAX #15) with the tables of unicode_version(). Returns `text` itself if nothing in it
// can change, which is found at the speed of a scan; else the result in `storage`. Bytes that are not UTF-8 stay as
// they are.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

// The last place behind the begin of `text`, searched down to `from`, where it can be cut so that both parts are
// normalised on their own; 0: there is none. A character that is cut off at the end of the text is no such place.
size_t last_nfc_boundary(std::string_view text, size_t from);

}  // namespace megalith::data
