// Any text is either a config that prints and reads back as itself, or a user error. The first line holds an override.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  using namespace megalith::config;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t line = text.find('\n');
  const std::vector<Source> sources = {{"fuzz", line == std::string::npos ? text : text.substr(line + 1)}};
  std::vector<std::string> overrides;
  if (line != std::string::npos && line > 0) overrides.push_back(text.substr(0, line));
  Run run;
  try {
    LoadReport report;
    run = load(sources, overrides, &report);
    describe(report);
    validate(run);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user) std::abort();
    return 0;
  }
  const std::string printed = to_yaml(run);
  Run again = load(std::vector<Source>{{"printed", printed}}, {});
  validate(again);
  if (to_yaml(again) != printed) std::abort();
  for (const auto& [key, value] : flatten(run)) value.dump();
  return 0;
}
