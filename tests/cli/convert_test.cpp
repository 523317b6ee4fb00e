#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

namespace fs = std::filesystem;
using ::megalith::testing::TempDir;

constexpr const char* kModel =
    "trainer.accelerator=cpu trainer.cpu_threads=1 trainer.max_steps=2 model.micro_batch_size=2 "
    "model.global_batch_size=2 model.encoder_seq_length=16 model.num_layers=2 model.hidden_size=16 "
    "model.num_attention_heads=4 model.init_method_std=0.2 model.data.data_impl=mock "
    "exp_manager.checkpoint_callback_params.every_n_train_steps=1 exp_manager.explicit_log_dir=run ";
constexpr const char* kLlama =
    "model.num_query_groups=2 model.position_embedding_type=rope model.normalization=rmsnorm model.activation=swiglu "
    "model.bias=false ";

// What the program says, which must succeed.
std::string told(const std::string& arguments, const TempDir& dir) {
  const Outcome outcome = run_program(arguments, dir.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << arguments << "\n" << outcome.output;
  return outcome.output;
}

std::string weight_digests(const std::string& checkpoint, const TempDir& dir) {
  std::istringstream lines(told("checkpoint inspect --digests " + checkpoint, dir));
  std::string found;
  bool in_digests = false;
  for (std::string line; std::getline(lines, line);) {
    if (in_digests && line.find(" weights ") != std::string::npos) found += line + "\n";
    in_digests = in_digests || line.starts_with("digests");
  }
  return found;
}

TEST(Convert, ALlamaGoesAndComesBack) {
  const TempDir dir;
  told(std::string("train ") + kModel + kLlama, dir);
  told("checkpoint convert run --to hugging-face --output hf --max-shard-size 10KB", dir);
  EXPECT_TRUE(fs::exists(dir / "hf/model.safetensors.index.json"));
  const std::string answer =
      told("checkpoint convert hf --to megalith --output back model.tokenizer.type=ByteTokenizer", dir);
  EXPECT_NE(answer.find("a llama of"), std::string::npos) << answer;
  EXPECT_NE(weight_digests("run", dir), "");
  EXPECT_EQ(weight_digests("back", dir), weight_digests("run", dir));
  const auto logits_of = [&](const std::string& checkpoint) {
    told("generate --checkpoint " + checkpoint + " --prompt abc --logits " + checkpoint + ".logits", dir);
    std::ifstream file(dir / (checkpoint + ".logits"), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(logits_of("back"), logits_of("run"));
  EXPECT_GE(fs::file_size(dir / "run.logits"), 3u * 257 * 4);

  const Outcome again = run_program("checkpoint convert run --to hugging-face --output hf", dir.path().string());
  EXPECT_EQ(again.exit_code, 2) << again.output;
  EXPECT_NE(again.output.find("not empty"), std::string::npos) << again.output;
  const Outcome wrong = run_program("checkpoint convert run --to megalith --output x", dir.path().string());
  EXPECT_NE(wrong.exit_code, 0) << wrong.output;
  EXPECT_NE(wrong.output.find("config.json"), std::string::npos) << wrong.output;
}

TEST(Convert, AGpt2TakesItsTokenizerAlong) {
  const TempDir dir;
  std::ofstream(dir / "text.txt") << "the cat sat on the mat, and the dog sat on the cat\n";
  told("data train-tokenizer --input text.txt --output-dir tokenizer --vocab-size 270", dir);
  told(std::string("train ") + kModel +
           "model.tokenizer.type=GPT2BPETokenizer model.tokenizer.vocab_file=tokenizer/vocab.json "
           "model.tokenizer.merge_file=tokenizer/merges.txt",
       dir);
  fs::remove_all(dir / "tokenizer");
  fs::create_directory(dir / "elsewhere");
  fs::rename(dir / "run", dir / "elsewhere/moved");
  told("checkpoint convert elsewhere/moved/checkpoints/step-00000001 --to hugging-face --output hf", dir);
  told("checkpoint convert hf --to megalith --output back", dir);
  fs::remove_all(dir / "hf");
  for (const char* model : {"elsewhere/moved/checkpoints/step-00000001", "back"}) {
    const std::string answer =
        told(std::string("generate --prompt 'the cat' --greedy --max-tokens 5 --checkpoint ") + model, dir);
    EXPECT_NE(answer.find("the cat"), std::string::npos) << answer;
  }
  const Outcome other =
      run_program("generate --checkpoint back --prompt x model.tokenizer.vocab_file=other.json", dir.path().string());
  EXPECT_EQ(other.exit_code, 2) << other.output;
  EXPECT_NE(other.output.find("other.json"), std::string::npos) << "what is named after the command wins\n"
                                                                << other.output;
}

TEST(Convert, VerifyNamesWhatIsDamagedAndGoesOn) {
  const TempDir dir;
  told(std::string("train ") + kModel, dir);
  const std::string sound = told("checkpoint verify run", dir);
  for (const char* words : {"step-00000001", "step-00000002", "GB/s", "1 chunk of 1 shard;"}) {
    EXPECT_NE(sound.find(words), std::string::npos) << words << "\n" << sound;
  }
  for (const auto& entry : fs::directory_iterator(dir / "run/checkpoints/step-00000002")) {
    if (entry.path().extension() == ".safetensors") fs::resize_file(entry.path(), fs::file_size(entry.path()) - 1);
  }
  const Outcome outcome = run_program("checkpoint verify run", dir.path().string());
  EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("step-00000002: damaged"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("step-00000001: every byte"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace megalith::cli::testing
