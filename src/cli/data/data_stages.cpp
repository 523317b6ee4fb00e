#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "data/prepare/copy_texts.h"
#include "data/prepare/merge.h"
#include "data/prepare/read/input_list.h"

namespace megalith::cli {

namespace {

struct CopyVerb {
  TextOptions text;
  data::CopyOptions copy;
  std::string input_list;
  std::string worker;
  int64_t files_per_chunk = 800;
  std::string stem = "train_chunk";
};

std::shared_ptr<CopyVerb> add_copy_options(CLI::App& verb) {
  const auto options = std::make_shared<CopyVerb>();
  options->copy.threads = available_cores();
  add_input_options(verb, options->copy.inputs, options->input_list);
  verb.add_option("--output-dir", options->copy.output_directory, "where the files go")->required();
  add_text_options(verb, options->text);
  verb.add_option("--workers", options->copy.threads, "threads")
      ->check(between(1, kMostThreads))
      ->capture_default_str();
  verb.add_option("--worker", options->worker,
                  "i/n: this process makes outputs i, i+n, ...; Slurm's variables by default");
  verb.add_flag("--overwrite", options->copy.overwrite, "replace files that were made otherwise");
  return options;
}

template <class Make>
int run_copy(CopyVerb options, Make&& make) {
  data::CopyOptions& copy = options.copy;
  if (!options.input_list.empty()) read_input_list(options.input_list, copy.inputs);
  copy.keep = options.text.filters();
  copy.on_error = options.text.on_error;
  copy.read = options.text.read;
  copy.max_document_bytes = options.text.max_document_bytes;
  copy.worker = worker_share(options.worker);
  ProgressLine line;
  copy.progress = [&line](const data::CopyCounts& counts) {
    line.show(fmt::format("{} outputs, {:.1f} MB in, {:.1f} MB out", counts.outputs,
                          static_cast<double>(counts.bytes_in) / 1e6, static_cast<double>(counts.bytes_out) / 1e6));
  };
  copy.warn = [&line](const std::string& warning) { line.warn(warning); };
  const data::CopyCounts counts = make(options);
  line.end();
  std::cout << fmt::format("{} ({} were there before), {}, {} bytes of text from {} bytes",
                           counted(counts.outputs, "file"), counts.outputs_before, counted(counts.lines, "line"),
                           counts.bytes_out, counts.bytes_in);
  if (counts.filtered > 0) std::cout << fmt::format(", {} lines filtered out", counts.filtered);
  std::cout << '\n';
  print_skipped(counts.skipped);
  return kExitComplete;
}

struct MergeVerb {
  std::vector<std::string> inputs;
  std::string output;
  data::MergeOptions merge;
};

// Patterns stand for the datasets that their indices show, in natural order.
std::vector<std::string> expand_prefixes(const std::vector<std::string>& patterns) {
  constexpr std::string_view kIndex = ".idx";
  std::vector<std::string> prefixes;
  for (const std::string& pattern : patterns) {
    if (pattern.find_first_of("*?[") == std::string::npos) {
      prefixes.push_back(pattern);
      continue;
    }
    for (const data::InputFile& file : data::list_inputs({pattern + std::string(kIndex)}, /*sort_all=*/true)) {
      const std::string path = file.path.string();
      prefixes.push_back(path.substr(0, path.size() - kIndex.size()));
    }
  }
  return prefixes;
}

int run_merge(MergeVerb options) {
  options.inputs = expand_prefixes(options.inputs);
  ProgressLine line;
  options.merge.progress = [&line](int64_t bytes, int64_t total) {
    line.show(fmt::format("{:.1f} of {:.1f} MB", static_cast<double>(bytes) / 1e6, static_cast<double>(total) / 1e6));
  };
  const auto counts = data::merge_datasets(options.inputs, options.output, options.merge);
  line.end();
  std::cout << fmt::format("{} {}.bin and .idx: {}, {} from {}\n", counts.was_there ? "complete before:" : "wrote",
                           options.output, counted(counts.documents, "document"), counted(counts.tokens, "token"),
                           counted(std::ssize(options.inputs), "dataset"));
  return kExitComplete;
}

}  // namespace

void add_data_extract(CLI::App& data, Action& run) {
  CLI::App* verb = data.add_subcommand(
      "extract",
      "Decompress files into a folder, keeping all lines or those that pass a filter. `prepare` needs no such step.\n\n"
      "  megalith data extract --input 'slim/*.jsonl.zst' --output-dir extracted \\\n"
      "    --keep meta.redpajama_set_name=RedPajamaC4,RedPajamaWikipedia");
  const auto options = add_copy_options(*verb);
  verb->callback([options, &run] {
    run = [options] {
      return run_copy(*options, [](const CopyVerb& verb_options) { return data::extract_texts(verb_options.copy); });
    };
  });
}

void add_data_concat(CLI::App& data, Action& run) {
  CLI::App* verb = data.add_subcommand(
      "concat",
      "Join files, compressed or not, into chunks train_chunk_<i>.jsonl. `prepare` needs no such step.\n\n"
      "  megalith data concat --input 'extracted/*.jsonl' --output-dir concatenated --files-per-chunk 800");
  const auto options = add_copy_options(*verb);
  verb->add_option("--files-per-chunk", options->files_per_chunk, "input files of a chunk")
      ->check(at_least(1))
      ->capture_default_str();
  verb->add_option("--stem", options->stem, "chunks are STEM_<i>.jsonl")->capture_default_str();
  verb->callback([options, &run] {
    run = [options] {
      return run_copy(*options, [](const CopyVerb& verb_options) {
        return data::concat_texts(verb_options.copy, verb_options.files_per_chunk, verb_options.stem);
      });
    };
  });
}

void add_data_merge(CLI::App& data, Action& run) {
  CLI::App* verb = data.add_subcommand("merge",
                                       "Join several .bin and .idx pairs into one.\n\n"
                                       "  megalith data merge --input data/my-gpt3_00_text_document "
                                       "data/my-gpt3_01_text_document --output-prefix data/all\n"
                                       "  megalith data merge --input 'data/my-gpt3_*_text_document' --output-prefix "
                                       "data/all");
  const auto options = std::make_shared<MergeVerb>();
  verb->add_option("--input", options->inputs,
                   "prefixes, without .bin and .idx, in the order wanted, and patterns of such, in natural order")
      ->required();
  verb->add_option("--output-prefix", options->output, "writes PREFIX.bin, .idx and .json")->required();
  verb->add_flag("--overwrite", options->merge.overwrite, "replace output of another merge");
  verb->add_flag("--force", options->merge.force, "merge also what different tokenizers made");
  verb->callback([options, &run] { run = [options] { return run_merge(*options); }; });
}

}  // namespace megalith::cli
