#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <span>

#include "cli/accepts.h"
#include "cli/verbs.h"
#include "config/suggest.h"
#include "core/error.h"

namespace megalith::cli {

namespace {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& names) {
  const auto nearest = config::nearest_name(word, names);
  return nearest ? fmt::format("; did you mean '{}'?", *nearest) : "";
}

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

// The words before the first option must be verbs, as far down as there are any.
void check_verbs(const CLI::App& program, std::span<char*> words) {
  const CLI::App* app = &program;
  for (const std::string word : words) {
    const std::vector<std::string> verbs = verbs_of(*app);
    if (verbs.empty() || word.starts_with('-')) return;
    if (std::find(verbs.begin(), verbs.end(), word) == verbs.end()) {
      const std::string of = app == &program ? "" : fmt::format(" of '{}'", app->get_name());
      const std::string nearest = did_you_mean(word, verbs);
      user_error("unknown verb '{}'{}{}", word, of,
                 nearest.empty() ? fmt::format("; there are {}", fmt::join(verbs, ", ")) : nearest);
    }
    app = app->get_subcommand(word);
  }
}

// The library takes -1 for 18446744073709551615.
void refuse_negative_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_type_name() == "UINT") option->check(at_least(0));
  }
  for (CLI::App* verb : app.get_subcommands([](CLI::App*) { return true; })) refuse_negative_values(*verb);
}

// The verb that was chosen, and the words that chose it.
struct Chosen {
  const CLI::App* app;
  std::string words;
};

Chosen chosen_verb(const CLI::App& program) {
  Chosen chosen{&program, program.get_name()};
  while (!chosen.app->get_subcommands().empty()) {
    chosen.app = chosen.app->get_subcommands().back();
    chosen.words += " " + chosen.app->get_name();
  }
  return chosen;
}

std::vector<std::string> options_of(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// Words that no option has taken. The library counts the -- that ends the options among them.
std::vector<std::string> extras_of(const CLI::App& program) {
  std::vector<std::string> extras = program.remaining(/*recurse=*/true);
  extras.erase(std::remove(extras.begin(), extras.end(), "--"), extras.end());
  return extras;
}

std::string explain_extras(const std::vector<std::string>& extras, const CLI::App& verb) {
  const auto option =
      std::find_if(extras.begin(), extras.end(), [](const std::string& word) { return word.starts_with('-'); });
  if (option == extras.end()) return fmt::format("'{}' was not expected", extras.front());
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option '{}'{}", name, did_you_mean(name, options_of(verb)));
}

// "--seed = abc": what no validator has looked at.
std::string explain_conversion(const CLI::App& verb, const std::string& message) {
  constexpr std::string_view kBefore = "Could not convert: ";
  const size_t equals = message.find(" = ");
  if (!message.starts_with(kBefore) || equals == std::string::npos) return message;
  const std::string name = message.substr(kBefore.size(), equals - kBefore.size());
  const std::string value = message.substr(equals + 3);
  const CLI::Option* option = verb.get_option_no_throw(name);
  const std::string type = option == nullptr ? "" : option->get_type_name();
  const bool digits = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
  if (digits) return fmt::format("{} is too large: {}", name, value);
  return fmt::format("{} must be {}, not {}", name, type.starts_with("FLOAT") ? "a number" : "a whole number", value);
}

std::string explain_mismatch(const CLI::App& verb, const std::string& message) {
  for (const CLI::Option* option : verb.get_options()) {
    const std::string name = option->get_name();
    if (!message.starts_with(name + ":") && message.find(" " + name + ",") == std::string::npos) continue;
    if (message.ends_with("missing") || option->count() == 0) return name + " needs a value";
    return fmt::format("{} takes one value and was given {}", name, option->count());
  }
  return message;
}

std::string explain(const CLI::ParseError& error, const CLI::App& program, const CLI::App& verb) {
  std::string message = error.what();
  const auto replace = [&message](std::string_view from, std::string_view to) {
    const size_t at = message.find(from);
    if (at != std::string::npos) message.replace(at, from.size(), to);
  };
  if (error.get_name() == "ConversionError") return explain_conversion(verb, message);
  if (error.get_name() == "ArgumentMismatch") return explain_mismatch(verb, message);
  if (const std::vector<std::string> extras = extras_of(program); !extras.empty()) return explain_extras(extras, verb);
  if (error.get_name() == "ValidationError") replace(": ", " ");
  if (error.get_name() == "RequiresError") replace(" requires ", " needs ");
  if (error.get_name() == "ExcludesError") replace(" excludes ", " cannot be given together with ");
  return message;
}

}  // namespace

std::optional<int> parse_command_line(CLI::App& program, int argc, char** argv) {
  refuse_negative_values(program);
  check_verbs(program, std::span(argv, static_cast<size_t>(argc)).subspan(argc > 0 ? 1 : 0));
  try {
    program.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& asked) {
    program.exit(asked);
    return kExitComplete;
  } catch (const CLI::ParseError& error) {
    const Chosen chosen = chosen_verb(program);
    const bool verb_missing = !verbs_of(*chosen.app).empty() && extras_of(program).empty();
    if (!verb_missing) {
      user_error("{}\nsee {} --help", explain(error, program, *chosen.app), chosen.words);
    }
    std::cerr << program.help();
    return exit_code(ErrorKind::user);
  }
}

}  // namespace megalith::cli
