#pragma once

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>

namespace megalith::cli {

// `--help` in 80 columns: on the left what to write, on the right what it means, what is accepted and the default.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();

  std::string make_usage(const CLI::App* app, std::string name) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override;
};

}  // namespace megalith::cli
