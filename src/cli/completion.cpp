#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "cli/verbs.h"
#include "config/keys.h"

namespace megalith::cli {

namespace {

// The branches of the script's case statements.
struct Branches {
  std::vector<std::string> verbs;
  std::string words;      // of each verb: further verbs, or its options
  std::string values;     // of options that take one of a few
  std::string with_keys;  // verbs that take key=value, as one pattern
};

std::string with_spaces(std::string names) {
  std::replace(names.begin(), names.end(), '|', ' ');
  return names;
}

void add_options(const CLI::App& verb, const std::string& path, std::vector<std::string>& words, Branches& branches) {
  for (const CLI::Option* option : verb.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_name() == "overrides") branches.with_keys += fmt::format("|'{}'", path);
    if (!option->nonpositional()) continue;
    const std::string name = option->get_name();
    words.push_back(name);
    const std::string type = option->get_type_name();
    const std::string choices = type.substr(type.find(':') + 1);
    if (choices.find('|') == std::string::npos) continue;
    branches.values += fmt::format("    '{} {}') words='{}' ;;\n", path, name, with_spaces(choices));
  }
}

void add_branches(const CLI::App& verb, const std::string& path, Branches& branches) {
  std::vector<std::string> words;
  for (const CLI::App* below : verb.get_subcommands({})) {
    if (below->get_group().empty()) continue;  // for programs
    words.push_back(below->get_name());
    branches.verbs.push_back(fmt::format("'{} {}'", path, below->get_name()));
    add_branches(*below, path + " " + below->get_name(), branches);
  }
  add_options(verb, path, words, branches);
  branches.words += fmt::format("    '{}') words='{}' ;;\n", path, fmt::join(words, " "));
}

// Words that begin none of these are left to the shell, which completes file names.
constexpr const char* kScript = R"(# Completion of megalith for bash, made by `megalith completion bash`.
_megalith() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} verb= words= at
  for ((at = 1; at < COMP_CWORD; at++)); do
    case "$verb ${{COMP_WORDS[at]}}" in
    {0}) verb+=" ${{COMP_WORDS[at]}}" ;;
    *) break ;;
    esac
  done
  case "$verb" in
{1}  esac
  case "$verb $before" in
{2}  esac
  case "$verb" in
  {3}) if [[ $word == [a-z]* && $before != -* ]]; then
    words+=' {4}'
    compopt -o nospace
  fi ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _megalith megalith
)";

int print_bash(const CLI::App& program) {
  Branches branches;
  add_branches(program, "", branches);
  config::Run run;
  std::vector<std::string> keys;
  for (const config::Key& key : config::keys_of(run)) keys.push_back(std::string(key.path) + "=");
  std::cout << fmt::format(kScript, fmt::join(branches.verbs, " | "), branches.words, branches.values,
                           branches.with_keys.substr(1), fmt::join(keys, " "));
  return kExitComplete;
}

}  // namespace

void add_completion(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand("completion", "Complete verbs, options and config keys in a shell.");
  verb->require_subcommand(1);
  CLI::App* bash =
      verb->add_subcommand("bash",
                           "Print the script that bash needs.\n\n"
                           "  megalith completion bash > ~/.local/share/bash-completion/completions/megalith\n"
                           "  eval \"$(megalith completion bash)\"");
  bash->callback([&program, &run] { run = [&program] { return print_bash(program); }; });
}

}  // namespace megalith::cli
