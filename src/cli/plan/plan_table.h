#pragma once

#include <filesystem>

namespace megalith::cli {

// `plan --table`
struct PlanTableOptions {
  std::filesystem::path table;
  std::filesystem::path predictions;  // empty: not written
  std::filesystem::path constants;    // empty: those that ship
  std::filesystem::path hardware;     // empty: what ships
};

int plan_table(const PlanTableOptions& options);

}  // namespace megalith::cli
