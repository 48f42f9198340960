#include "core/result/integrity.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>

#include "core/base/error.h"

namespace dlbench {

namespace {

class Integrity {
 public:
  explicit Integrity(const std::string& origin) : origin_(origin) {}

  void points(const Result& result) {
    for (size_t i = 0; i < result.points.size(); ++i) {
      const PointRow& row = result.points[i];
      if (!row_of_.try_emplace(row.key, i).second)
        fail(fmt::format("/points/{}/key", i), fmt::format("{} is the key of another row as well", row.key));
      if (row.point.key() != row.key) {
        fail(fmt::format("/points/{}/key", i),
             fmt::format("{} does not agree with the axis_ columns, which spell {}", row.key, row.point.key()));
      }
      for (const double work : {row.flops_per_step, row.bytes_read_per_step, row.bytes_written_per_step}) {
        if (!(work >= 0) || !std::isfinite(work))
          fail(fmt::format("/points/{}", i), fmt::format("a work of {} per step is not possible", work));
      }
    }
    has_timings_.assign(result.points.size(), false);
  }

  void timing(const TimingRow& row, size_t i) {
    const std::string place = fmt::format("/timings/{}", i);
    const auto point = row_of_.find(row.key);
    if (point == row_of_.end()) fail(place + "/key", fmt::format("{} is no point of this file", row.key));
    if (!seen_[point->second].insert(row.process).second)
      fail(place, fmt::format("process {} has timings of {} already", row.process, row.key));
    if (row.process < 0) fail(place + "/process", fmt::format("{} is no process", row.process));
    if (row.steps_per_timing < 1)
      fail(place + "/steps_per_timing",
           fmt::format("{} is not possible; a timing has at least one", row.steps_per_timing));
    times(row.wall_seconds, place + "/wall_seconds");
    times(row.device_seconds, place + "/device_seconds");
    const size_t n = row.wall_seconds.size();
    for (const size_t other : {row.device_seconds.size(), row.block.size()}) {
      if (other != 0 && other != n) fail(place, "device_seconds and block must have an entry for each of wall_seconds");
    }
    for (const int block : row.block) {
      if (block < 0 || static_cast<size_t>(block) >= std::max<size_t>(1, row.placement.size()))
        fail(place + "/block", fmt::format("{} is no block of placement, which has {}", block, row.placement.size()));
    }
    if (n > 0) has_timings_[point->second] = true;
  }

  void whole(const Result& result) {
    for (size_t i = 0; i < result.points.size(); ++i) {
      if (result.points[i].status == Status::ok && !has_timings_[i] && !result.partial)
        fail(fmt::format("/points/{}", i), "is ok and has no timings, in a result that is not partial");
    }
  }

  void times(const std::vector<double>& seconds, const std::string& place) {
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (!(seconds[i] > 0) || !std::isfinite(seconds[i]))
        fail(fmt::format("{}/{}", place, i), fmt::format("{} is no time in seconds", seconds[i]));
    }
  }

 private:
  [[noreturn]] void fail(const std::string& pointer, const std::string& what) const {
    throw InputError(fmt::format("{}: {}: {}; dlbench never writes that: was the file edited? Measure again", origin_,
                                 pointer, what));
  }

  const std::string& origin_;
  std::unordered_map<std::string_view, size_t> row_of_;
  std::unordered_map<size_t, std::set<int>> seen_;
  std::vector<bool> has_timings_;
};

}  // namespace

void require_integrity(const Result& result, const std::string& origin) {
  Integrity integrity(origin);
  integrity.points(result);
  for (size_t i = 0; i < result.timings.size(); ++i) integrity.timing(result.timings[i], i);
  integrity.whole(result);
  for (size_t i = 0; i < result.controls.size(); ++i)
    integrity.times({result.controls[i].seconds}, fmt::format("/controls/{}/seconds", i));
}

}  // namespace dlbench
