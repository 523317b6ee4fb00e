#pragma once

#include "transformer_table.h"

namespace megalith::parallel::testing {

struct RecipeLayout {
  const char* name;
  Transformer model;
  Layout layout;
  int64_t micro_batches;
};

// The layouts of the recipes, with the optimizer sharded.
inline std::vector<RecipeLayout> recipe_layouts() {
  std::vector<RecipeLayout> recipes = {
      {"GPT-3 175B, VP 12", gpt3_175b(), {.tensor = 4, .pipeline = 8, .chunks = 12, .data = 8}, 32},
      {"GPT-3 175B, VP 2", gpt3_175b(), {.tensor = 4, .pipeline = 8, .chunks = 2, .data = 8}, 256},
      {"GPT-3 175B, TP8 PP16", gpt3_175b(), {.tensor = 8, .pipeline = 16, .data = 4}, 128},
      {"GPT-3 175B, TP32 PP8", gpt3_175b(50304), {.tensor = 32, .pipeline = 8, .data = 2}, 16},
      {"GPT-3 22B", gpt3_of_width_8192(28), {.tensor = 8, .pipeline = 4, .data = 3}, 16},
      {"GPT-3 45B", gpt3_of_width_8192(56), {.tensor = 8, .pipeline = 8, .data = 2}, 16},
      {"Llama-3.1 405B", llama3_405b(), {.tensor = 8, .pipeline = 18, .chunks = 7, .data = 3}, 144},
      {"Llama-3.1 405B, embedding and loss counted",
       llama3_405b(),
       {.tensor = 32,
        .pipeline = 8,
        .chunks = 8,
        .context = 2,
        .data = 2,
        .split = {.counts_embedding = true, .counts_loss = true}},
       32},
  };
  for (RecipeLayout& recipe : recipes) {
    recipe.layout.sequence_parallel = true;
    recipe.layout.shards_optimizer = true;
  }
  return recipes;
}

}  // namespace megalith::parallel::testing
