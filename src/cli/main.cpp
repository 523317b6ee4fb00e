#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <new>
#include <system_error>

#include "cli/command_line.h"
#include "cli/help.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/process/version.h"

namespace megalith::cli {

namespace {

// A path that is not there or not ours is the user's to mend; a disk that is full or broken is the machine's.
ErrorKind kind_of(const std::error_code& code) {
  for (const std::errc users :
       {std::errc::permission_denied, std::errc::operation_not_permitted, std::errc::read_only_file_system,
        std::errc::no_such_file_or_directory, std::errc::not_a_directory, std::errc::is_a_directory,
        std::errc::file_exists, std::errc::filename_too_long, std::errc::too_many_symbolic_link_levels}) {
    if (code == users) return ErrorKind::user;
  }
  return ErrorKind::io;
}

// "filesystem error: cannot create directories: Permission denied [a/b]" as "cannot create directory a/b: Permission
// denied".
Error in_plain_words(const std::filesystem::filesystem_error& error) {
  std::string tried = error.what();
  tried = tried.substr(0, tried.find(": " + error.code().message()));
  const size_t verb = tried.find("cannot ");
  tried = verb == std::string::npos ? "cannot read" : tried.substr(verb);
  if (tried.ends_with("directories")) tried.replace(tried.size() - 3, 3, "y");
  const std::string to = error.path2().empty() ? "" : " to " + error.path2().string();
  return {kind_of(error.code()), fmt::format("{} {}{}: {}", tried, error.path1().string(), to, error.code().message())};
}

int tell(const Error& error) {
  std::cerr << "megalith: " << error.what() << '\n';
  return exit_code(error.kind());
}

int run_program(int argc, char** argv) {
  CLI::App program(
      "Megalith takes raw text to a trained GPT-3 or Llama-3 checkpoint.\n\n"
      "  megalith train -c recipes/gpt3-125m.yaml trainer.max_steps=100\n"
      "  megalith generate --checkpoint runs/demo --prompt \"Once\"\n\n"
      "Each verb has a --help with examples. Exit codes: 0 complete; 75 stopped early, saved,\n"
      "run again to continue; 2 the input is wrong; a failure: 3 another rank was lost,\n"
      "4 a number is not finite, 5 storage, 6 an accelerator, 1 any other; 130 interrupted twice.",
      "megalith");
  program.formatter(std::make_shared<HelpFormatter>());
  program.require_subcommand(1);
  program.set_version_flag("--version", program_version());
  Action action;
  add_verbs(program, action);
  if (const auto code = parse_command_line(program, argc, argv)) return *code;
  return action();
}

}  // namespace

// What every error becomes in the end: words for the user and an exit code.
int run(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const Error& error) {
    return tell(error);
  } catch (const std::filesystem::filesystem_error& error) {
    return tell(in_plain_words(error));
  } catch (const std::bad_alloc&) {
    return tell({ErrorKind::internal, "out of memory"});
  } catch (const std::exception& error) {
    return tell({ErrorKind::internal, error.what()});
  }
}

}  // namespace megalith::cli

int main(int argc, char** argv) {
  return megalith::cli::run(argc, argv);
}
