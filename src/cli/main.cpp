#include <CLI/CLI.hpp>
#include <iostream>
#include <new>

#include "cli/verbs.h"
#include "core/error.h"

namespace megalith::cli {

int run_program(int argc, char** argv) {
  CLI::App program(
      "Megalith takes raw text to a trained GPT-3 or Llama-3 checkpoint.\n\n"
      "  megalith train -c recipes/gpt3-125m.yaml trainer.max_steps=100\n"
      "  megalith generate --checkpoint runs/demo --prompt \"Once\"\n\n"
      "Exit codes: 0 complete; 75 stopped early, saved, run again to continue; 2 the input is wrong; 1 a failure.",
      "megalith");
  program.require_subcommand(1);
  program.set_version_flag("--version", "megalith 0.1.0");
  Action action;
  add_train(program, action);
  add_generate(program, action);
  add_evaluate(program, action);
  add_data(program, action);
  add_checkpoint(program, action);
  add_report(program, action);
  add_watch(program, action);
  add_bench(program, action);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? kExitComplete : exit_code(ErrorKind::user);
  }
  return action();
}

}  // namespace megalith::cli

int main(int argc, char** argv) {
  try {
    return megalith::cli::run_program(argc, argv);
  } catch (const megalith::Error& error) {
    std::cerr << "megalith: " << error.what() << '\n';
    return megalith::exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    std::cerr << "megalith: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "megalith: " << error.what() << '\n';
  }
  return megalith::exit_code(megalith::ErrorKind::internal);
}
