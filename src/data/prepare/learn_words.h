#pragma once

#include <cstdint>

#include "data/prepare/prepare.h"
#include "data/tokenizer/bpe/train_bpe.h"

namespace megalith::data {

struct LearnedTexts {
  int64_t documents = 0;
  int64_t filtered = 0;
  BadLines skipped;
};

// Adds the texts that `prepare` would encode with these options, read in the same way. What is bad stops it or is left
// out, as options.encode.on_error says; of a damaged file that is left out, what came before the damage is used.
LearnedTexts learn_words(BpeTrainer& trainer, const PrepareOptions& options);

}  // namespace megalith::data
