// peak: fused multiply-adds held in registers on every core: the flat line of the roofline, per unit and precision.
//
// Why: a fraction of peak needs a peak that was measured here, not one from a datasheet.
// Every chain counts its own rounds (see Ops::fma_peak), so a skipped round shows in the result.
#include <cmath>

#include "core/base/error.h"
#include "workloads/catalog.h"

namespace dlbench {

namespace {

constexpr FmaUnit kUnits[] = {FmaUnit::vector_auto, FmaUnit::scalar,      FmaUnit::sse2,     FmaUnit::avx2,
                              FmaUnit::avx512,      FmaUnit::dot_product, FmaUnit::cuda_core};

std::vector<std::string> unit_words() {
  std::vector<std::string> words;
  for (const FmaUnit unit : kUnits) words.emplace_back(to_string(unit));
  return words;
}

FmaUnit unit_of(const std::string& word) {
  for (const FmaUnit unit : kUnits) {
    if (to_string(unit) == word) return unit;
  }
  throw Error("peak: no unit " + word);
}

class PeakWorkload final : public Workload {
 public:
  explicit PeakWorkload(const Point& point)
      : spec_{.precision = point.precision(),
              .unit = unit_of(point.word("unit")),
              .iterations = point.integer("iterations")} {
    buffers_.push_back({.name = "out", .role = BufferRole::output, .shape = {1}, .dtype = DType::f32});
  }

  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  /// FLOPs depend on the device's cores and chains: see device_cost.
  Work work() const override {
    return {
        .cost = {}, .samples = static_cast<double>(spec_.iterations), .sample_unit = "rounds", .working_set_bytes = 0};
  }
  Support supported_by(Device& device) const override {
    return device.ops().supports_fma_unit(spec_.unit, spec_.precision);
  }
  OutputTolerance tolerance(size_t) const override {
    return {.op_class = OpClass::exact, .precision = spec_.precision};
  }

  void prepare(Device& device) override { buffers_[0].shape = {device.ops().fma_peak_outputs(spec_)}; }
  std::optional<Cost> device_cost(Device& device) const override {
    const auto outputs = static_cast<double>(device.ops().fma_peak_outputs(spec_));
    return Cost{.flops = device.ops().fma_peak_flops(spec_), .bytes_read = 0, .bytes_written = sizeof(float) * outputs};
  }
  void step(Device& device, const Binding& b) override { device.ops().fma_peak(spec_, b[0]); }

  bool verifiable_by_reference() const override { return false; }
  std::string verify_self(Device&, const std::vector<HostTensor>& tensors) const override {
    const HostTensor& out = tensors.at(0);
    for (int64_t i = 0; i < out.size(); ++i) {
      if (out.at(i) == out.at(0) && is_count(out.at(0))) continue;
      return "chain " + std::to_string(i) + " counted " + std::to_string(out.at(i)) + " in " +
             std::to_string(spec_.iterations) + " rounds";
    }
    return "";
  }

 private:
  /// What a chain may have counted: every round, two per round for dot products of pairs, or, with a 16-bit accumulator
  /// that starts again while it can still count, the rounds since the last start (2^11 in fp16, 2^8 in bf16).
  bool is_count(double value) const {
    const auto n = static_cast<double>(spec_.iterations);
    if (value == n || value == 2 * n) return true;
    const bool narrow = size_of(storage_of(spec_.precision)) == 2;
    return narrow && (value == std::fmod(n, 2048) || value == std::fmod(n, 256));
  }

  FmaPeakSpec spec_;
  std::vector<BufferSpec> buffers_;
};

}  // namespace

const WorkloadDescriptor& peak_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "peak",
      .workload_class = "system",
      .summary = "fused multiply-adds in registers: the most FLOP/s of a unit and precision",
      .sweep_axis = "",
      .axes =
          {{.name = "unit",
            .kind = AxisKind::word,
            .fallback = "vector_auto",
            .words = unit_words(),
            .summary = "execution unit; vector_auto is the widest there is"},
           // No power of two: a chain that starts again at zero every 2^k rounds must not end at zero, as an idle one.
           {.name = "iterations",
            .fallback = int64_t{1000000},
            .high = (int64_t{1} << 24) / 2,
            .summary = "rounds of every chain in a step"}},
      .precisions = {Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16},
      .narrowed = {{"data", {"resident"}}, {"cache", {"warm"}}},
      .create = [](const Point& point) -> std::unique_ptr<Workload> { return std::make_unique<PeakWorkload>(point); }};
  return descriptor;
}

}  // namespace dlbench
