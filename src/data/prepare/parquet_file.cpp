#include "data/prepare/parquet_file.h"

#include <dlfcn.h>

#include "core/error.h"

namespace megalith::data {

namespace {
struct Module {
  decltype(&megalith_open_parquet) open = nullptr;
  std::string problem;  // why there is none
};

// RTLD_LOCAL: Arrow's libraries from PyPI hold a copy of OpenSSL (some also of simdjson) that must not take the place
// of the program's own.
Module load_module() {
  void* module = ::dlopen("libmegalith_parquet.so", RTLD_NOW | RTLD_LOCAL);
  void* open = module == nullptr ? nullptr : ::dlsym(module, "megalith_open_parquet");
  if (open == nullptr) return {.problem = ::dlerror()};
  return {.open = reinterpret_cast<decltype(&megalith_open_parquet)>(open)};
}

const Module& module() {
  static const Module loaded = load_module();
  return loaded;
}
}  // namespace

void require_parquet_reader(const std::filesystem::path& path) {
  if (module().open != nullptr) return;
  user_error(
      "{}: this build of megalith does not read Parquet ({}): run scripts/install-deps --parquet and build again, or "
      "turn the file into .jsonl, .jsonl.gz or .jsonl.zst",
      path.string(), module().problem);
}

std::shared_ptr<const ParquetFile> open_parquet(const std::filesystem::path& path,
                                                const std::vector<std::string>& columns) {
  require_parquet_reader(path);
  return std::shared_ptr<const ParquetFile>(module().open(path, columns));
}

}  // namespace megalith::data
