#include "core/plan/key_filter.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"

namespace dlbench {

KeyFilter::KeyFilter(const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    const bool excludes = filter.starts_with('-');
    try {
      (excludes ? exclude_ : include_).emplace_back(excludes ? filter.substr(1) : filter);
    } catch (const std::regex_error& e) {
      throw UsageError(fmt::format("--filter {}: not a regular expression: {}", filter, e.what()));
    }
  }
}

bool KeyFilter::keeps(const std::string& key) const {
  const auto matches = [&key](const std::regex& expression) { return std::regex_search(key, expression); };
  return (include_.empty() || std::any_of(include_.begin(), include_.end(), matches)) &&
         std::none_of(exclude_.begin(), exclude_.end(), matches);
}

}  // namespace dlbench
