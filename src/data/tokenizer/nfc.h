#pragma once

#include <string>
#include <string_view>

namespace megalith::data {

// Unicode normalisation form C (UAX #15) with the tables of unicode_version(). Returns `text` itself if nothing in it
// can change, which is found at the speed of a scan; else the result in `storage`. Bytes that are not UTF-8 stay as
// they are.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

}  // namespace megalith::data
