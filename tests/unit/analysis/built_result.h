// Builds results for the tests of the analysis: a point a line, with timings of a given time and placement.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/analysis/analysis.h"
#include "core/base/error.h"
#include "core/result/result.h"

namespace dlbench::built {

struct PointSpec {
  std::string workload = "gemm";
  std::string device = "cpu";
  std::string precision = "fp32";
  int64_t batch = 64;  ///< value of the sweep axis
  double seconds = 1e-3;
  double flops = 0, bytes = 0, working_set = 0;
  double written_share = 0;       ///< of the bytes
  int threads = 2;                ///< of CPU points
  std::string launch = "stream";  ///< of GPU points
  std::string kind = "";          ///< device_kind; "": from the device
  std::string support = "native";
  Status status = Status::ok;
  int processes = 3;
  double noise = 0.01;                            ///< of ln(time), alternating between processes
  std::vector<std::string> placement = {"near"};  ///< per process; the last one repeats
};

class Builder {
 public:
  Builder& add(const PointSpec& s) {
    PointRow row;
    row.workload = s.workload;
    row.device = s.device;
    row.side = s.device.find("gpu") != std::string::npos ? "gpu" : "cpu";
    row.device_kind = !s.kind.empty() ? s.kind : s.device.starts_with("meta") ? "meta" : row.side;
    row.precision = s.precision;
    row.sweep_axis = s.workload == "peak"     ? ""
                     : s.workload == "membw"  ? "bytes"
                     : s.workload == "launch" ? "count"
                                              : "batch";
    row.point.workload = s.workload;
    if (!row.sweep_axis.empty()) {
      row.sweep_value = static_cast<double>(s.batch);
      row.point.axes.emplace_back(row.sweep_axis, s.batch);
    }
    row.point.axes.emplace_back("precision", s.precision);
    if (row.side == "gpu") row.point.axes.emplace_back("launch", s.launch);
    if (row.side == "cpu") row.point.axes.emplace_back("threads", int64_t{s.threads});
    row.point.axes.emplace_back("device", s.device);
    row.key = row.point.key();
    row.pair_key = row.point.pair_key();
    row.sweep_key = row.point.sweep_key(row.sweep_axis);
    row.status = s.status;
    row.reason = s.status == Status::ok ? "" : "planted";
    row.support = s.support;
    row.flops_per_step = s.flops;
    row.bytes_read_per_step = s.bytes * (1 - s.written_share);
    row.bytes_written_per_step = s.bytes * s.written_share;
    row.working_set_bytes = s.working_set > 0 ? s.working_set : s.bytes;
    row.samples_per_step = static_cast<double>(s.batch);
    row.sample_unit = "rows";
    result.points.push_back(row);
    for (int p = 0; p < (s.status == Status::ok ? s.processes : 0); ++p) add_timing(row.key, s, p);
    return *this;
  }

  Result result;

 private:
  void add_timing(const std::string& key, const PointSpec& s, int process) {
    TimingRow t;
    t.key = key;
    t.process = process;
    const double sign = process % 2 == 0 ? 1 : -1;
    const double seconds = s.seconds * std::exp(s.noise * sign);
    for (int i = 0; i < 6; ++i) t.wall_seconds.push_back(seconds * (1 + 1e-4 * s.noise * (i - 2)));
    t.block.assign(6, 0);
    t.placement = {s.placement[std::min<size_t>(static_cast<size_t>(process), s.placement.size() - 1)]};
    result.timings.push_back(t);
  }
};

inline const AnalyzedPoint& find(const Analysis& analysis, const std::string& device, int64_t batch,
                                 const std::string& workload = "gemm", int threads = 0) {
  for (const AnalyzedPoint& p : analysis.points) {
    if (p.row->device != device || p.row->workload != workload) continue;
    if (p.row->sweep_value && *p.row->sweep_value != static_cast<double>(batch)) continue;
    const AxisValue* t = p.row->point.find("threads");
    if (threads == 0 || (t && *t == AxisValue{int64_t{threads}})) return p;
  }
  throw Error("built::find: no such point");
}

}  // namespace dlbench::built
