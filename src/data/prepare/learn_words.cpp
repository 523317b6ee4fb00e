#include "data/prepare/learn_words.h"

#include "core/error.h"
#include "data/prepare/encode_pipeline.h"
#include "data/prepare/prepare_job.h"

namespace megalith::data {

namespace {
// Behind the last newline between two characters that are no white space: there GPT-2's grammar cuts in any case. 0 if
// there is none.
size_t safe_cut(std::string_view text) {
  const auto is_word = [](char c) {
    return static_cast<unsigned char>(c) > ' ' && static_cast<unsigned char>(c) < 0x7f;
  };
  for (size_t at = text.rfind('\n'); at != std::string_view::npos && at > 0; at = text.rfind('\n', at - 1)) {
    if (at + 1 < text.size() && is_word(text[at - 1]) && is_word(text[at + 1])) return at + 1;
  }
  return 0;
}

// Takes a long text as it comes, so that memory does not grow with it.
class LearningStream : public EncodeStream {
 public:
  explicit LearningStream(BpeTrainer& trainer) : trainer_(trainer) {}

  void add(std::string_view piece, std::vector<int32_t>&) override {
    constexpr size_t kEnough = size_t{1} << 20;
    text_ += piece;
    if (text_.size() < kEnough) return;
    const size_t cut = safe_cut(text_);
    trainer_.add(std::string_view(text_).substr(0, cut));
    text_.erase(0, cut);
  }
  void finish(std::vector<int32_t>&) override { trainer_.add(text_); }

 private:
  BpeTrainer& trainer_;
  std::string text_;
};

// Learns what it is given to encode.
class LearningTokenizer : public Tokenizer {
 public:
  explicit LearningTokenizer(BpeTrainer& trainer) : trainer_(trainer) {}

  std::string_view name() const override { return "learning"; }
  int64_t vocab_size() const override { return 1; }
  int32_t eod() const override { return 0; }
  void encode(std::string_view text, std::vector<int32_t>&) const override { trainer_.add(text); }
  std::string decode(std::span<const int32_t>) const override { return {}; }
  std::unique_ptr<EncodeStream> open_stream(const StreamOptions&) const override {
    return std::make_unique<LearningStream>(trainer_);
  }

 private:
  BpeTrainer& trainer_;
};

class LearningEnds : public PipelineEnds {
 public:
  LearningEnds(const PrepareOptions& options, std::vector<InputFile> files)
      : options_(options), units_(units_of(std::move(files), options)) {}

  std::optional<PipelineUnit> next_unit() override { return units_.next(); }

  void put(const PipelineUnit& unit, PipelineBatch batch) override {
    const bool fail_at_once = options_.encode.on_error == OnError::fail;
    if (!batch.damage.empty()) {
      if (fail_at_once) data_error("{}", batch.damage);
      learned_.skipped.add(BadLine::damaged_file, unit.name());
    }
    for (const RejectedLine& bad : batch.encoded.bad) {
      if (fail_at_once) refuse_line(unit, lines_ + bad.line, bad);
      learned_.skipped.add(bad.kind, unit.place(lines_ + bad.line));
    }
    learned_.documents += batch.encoded.documents;
    learned_.filtered += batch.encoded.filtered;
    lines_ = batch.last ? 0 : lines_ + batch.encoded.lines;
  }

  LearnedTexts finish() { return std::move(learned_); }

 private:
  const PrepareOptions& options_;
  InputUnits units_;
  int64_t lines_ = 0;  // of the unit so far
  LearnedTexts learned_;
};
}  // namespace

LearnedTexts learn_words(BpeTrainer& trainer, const PrepareOptions& options) {
  const LearningTokenizer tokenizer(trainer);
  std::vector<InputFile> files = list_inputs(options.inputs, /*sort_all=*/true);
  check_inputs(files, options);
  LearningEnds ends(options, std::move(files));
  run_pipeline(tokenizer, pipeline_options(options), ends);
  return ends.finish();
}

}  // namespace megalith::data
