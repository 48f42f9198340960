// Uses the installed headers and library the way a reader of results would.
#include <cstdio>

#include "core/analysis/statistics.h"
#include "core/base/json.h"
#include "core/tensor/precision.h"

int main() {
  const dlbench::Json json = dlbench::parse_json("{\"precision\": \"bf16\"}", "a literal");
  const auto precision = dlbench::parse_precision(json.at("precision").get<std::string>());
  std::printf("%s stores %zu bytes, median %.1f\n", std::string(to_string(precision)).c_str(),
              dlbench::size_of(dlbench::storage_of(precision)), dlbench::median({3.0, 1.0, 2.0}));
  return 0;
}
