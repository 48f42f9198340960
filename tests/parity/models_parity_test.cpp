// Whole training steps of small models on the device under test.
//
// Why beside the ops: what no single op shows is order, reuse of memory, and state that survives a step.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/base/random.h"
#include "core/device/device.h"
#include "support/device_under_test.h"
#include "support/model_run.h"

namespace dlbench::test {
namespace {

class ModelParity : public testing::TestWithParam<SmallModel> {};
INSTANTIATE_TEST_SUITE_P(Small, ModelParity, testing::ValuesIn(small_models()),
                         [](const auto& each) { return each.param.name; });

std::vector<Precision> precisions_of(const SmallModel& small) {
  std::vector<Precision> supported;
  for (const Precision p : {Precision::fp64, Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16}) {
    const TrainingModel model = small.make(p, ImageLayout::nchw);
    if (model.program.supported_by(device_under_test().ops(), p).level != SupportLevel::no) supported.push_back(p);
  }
  return supported;
}

TrainingModel make(const SmallModel& small, Precision precision) {
  return small.make(precision, device_under_test().ops().preferred_image_layout());
}

/// Every parameter and running statistic after some steps, less what it was before.
std::map<std::string, Values> steps_of(TrainingModel model, Device& device, int steps, const Values* x) {
  ModelRun run(std::move(model), device, 11);
  if (x) run.set_input("x", *x);
  std::map<std::string, Values> before = run.state(), change;
  for (int i = 0; i < steps; ++i) run.step();
  for (auto& [name, values] : run.state()) {
    Values& moved = change[name] = values;
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= before[name][i];
  }
  return change;
}

/// What a precision may be off from fp64 is what `reference` itself is off in that precision, within a factor: a fixed
/// bound can't know how a model amplifies rounding.
TEST_P(ModelParity, TenStepsMoveEveryParameterAsOnReference) {
  ASSERT_FALSE(precisions_of(GetParam()).empty()) << "the device supports no precision of this model";
  for (const Precision precision : precisions_of(GetParam())) {
    // Inputs of 16 bits are other inputs than those of fp64: both get the rounded ones.
    const bool images = GetParam().name != "gpt2";
    ModelRun rounded(make(GetParam(), precision), oracle(), 11);
    Values x;
    if (images) x = rounded.read(rounded.model().inputs.front().tensor);
    const Values* given = images ? &x : nullptr;
    const auto exact = steps_of(make(GetParam(), Precision::fp64), oracle(), 10, given);
    // Reference multiplies tf32 in full; what its 11 bits cost is what those of fp16 cost.
    const Precision alike = precision == Precision::tf32 ? Precision::fp16 : precision;
    const auto reference = steps_of(make(GetParam(), alike), oracle(), 10, given);
    const auto device = steps_of(make(GetParam(), precision), device_under_test(), 10, given);
    for (const auto& [name, step] : exact) {
      const double allowed = std::max(1e-4, 4 * relative_distance(reference.at(name), step));
      EXPECT_LE(relative_distance(device.at(name), step), allowed) << name << " at " << to_string(precision);
      EXPECT_GT(relative_distance(step, Values(step.size())), 0) << name << " didn't move";
    }
  }
}

/// A batch that can be learnt: images are a pattern of their class and noise; the next token is a function of this one.
void give_batch(ModelRun& run, uint64_t number) {
  const NamedTensor& first = run.model().inputs[0];
  const NamedTensor& second = run.model().inputs[1];
  const size_t rows = run.read(second.tensor).size(), count = run.read(first.tensor).size();
  Values inputs(count), labels(rows);
  const bool tokens = first.name == "tokens";
  for (size_t r = 0; r < rows; ++r) labels[r] = uniform_index(31, number, r, tokens ? 53 : 10);
  for (size_t i = 0; i < count; ++i) {
    if (tokens) {
      inputs[i] = labels[i];
      labels[i] = static_cast<double>((static_cast<int>(labels[i]) * 7 + 3) % 53);
      continue;
    }
    const size_t feature = i % (count / rows);
    const auto label = static_cast<uint64_t>(labels[i / (count / rows)]);
    const auto unit = static_cast<float>(kIrwinHallScale);
    inputs[i] = normal_value(32, label, feature, unit) + 0.3 * normal_value(33, number, i, unit);
  }
  run.set_input(first.name, inputs);
  run.set_input(second.name, labels);
}

Values loss_curve(const SmallModel& small, Precision precision, int steps, bool fixed_batch) {
  ModelRun run(make(small, precision), device_under_test(), 11);
  Values losses;
  for (int i = 0; i < steps; ++i) {
    give_batch(run, fixed_batch ? 0 : static_cast<uint64_t>(i));
    losses.push_back(run.step());
  }
  return losses;
}

/// How far the loss may be from that of fp32 at any of 50 steps, as a share of the first loss.
double curve_bound(Precision precision) {
  switch (precision) {
    case Precision::fp64:
    case Precision::fp32:
      return 0.01;
    case Precision::tf32:
    case Precision::fp16:
      return 0.05;
    case Precision::bf16:
      return 0.2;
  }
  return 0;
}

TEST_P(ModelParity, FiftyStepsFollowTheLossOfFp32) {
  const Values fp32 = loss_curve(GetParam(), Precision::fp32, 50, false);
  const double last = std::accumulate(fp32.end() - 10, fp32.end(), 0.0) / 10;
  EXPECT_LT(last, 0.9 * fp32.front()) << "nothing was learnt that could be followed";
  for (const Precision precision : precisions_of(GetParam())) {
    const Values losses = loss_curve(GetParam(), precision, 50, false);
    double worst = 0;
    for (size_t i = 0; i < losses.size(); ++i) worst = std::max(worst, std::fabs(losses[i] - fp32[i]) / fp32[0]);
    RecordProperty(std::string(to_string(precision)), std::to_string(worst));
    EXPECT_LE(worst, curve_bound(precision)) << to_string(precision);
  }
}

TEST_P(ModelParity, OneBatchIsLearntByHeart) {
  for (const Precision precision : precisions_of(GetParam())) {
    const Values losses = loss_curve(GetParam(), precision, 150, true);
    EXPECT_LT(losses.back(), 0.1 * losses.front()) << to_string(precision);
  }
}

}  // namespace
}  // namespace dlbench::test
