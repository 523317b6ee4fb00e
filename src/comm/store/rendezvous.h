#pragma once

#include "comm/ranks.h"
#include "comm/store/store.h"

namespace megalith::comm {

// Tells the others where this rank runs and learns it of all of them. Comm error that names the ranks that did not
// appear within `seconds`. Ranks that reached the store over its machine's loopback get an address that others know.
RankPlaces exchange_places(StoreClient& store, int rank, int size, const RankPlace& own, double seconds);

// Ranks as a text for people, "1, 2", and back.
std::string ranks_in_words(const std::vector<int>& ranks);
std::vector<int> ranks_in(const std::string& words);

// A number that is the same for the same key on every rank and differs between keys.
uint32_t number_of_group(StoreClient& store, const std::string& key, double seconds);

// Where a rank that gives up leaves word of what it failed in, for those who will miss it.
std::string last_word_key(int rank);

}  // namespace megalith::comm
