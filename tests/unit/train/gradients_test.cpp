// The gradients of whole models against finite differences in fp64 on the reference device.
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/random.h"
#include "core/device/reference_device.h"
#include "support/model_run.h"

namespace dlbench::test {
namespace {

class ModelGradients : public testing::TestWithParam<SmallModel> {};
INSTANTIATE_TEST_SUITE_P(All, ModelGradients, testing::ValuesIn(small_models()),
                         [](const auto& each) { return each.param.name; });

Values direction(const std::string& name, size_t count) {
  Values d(count);
  for (size_t i = 0; i < count; ++i) {
    d[i] = normal_value(5, stream_of(name, 0), i, static_cast<float>(kIrwinHallScale));
  }
  return d;
}

double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The derivative of the loss along a direction of each parameter: by backward, and by moving the parameter both ways.
TEST_P(ModelGradients, AreThoseOfFiniteDifferences) {
  constexpr double kStep = 1e-7;  // so small that hardly any ReLU changes its side on the way
  for (const ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
    const std::unique_ptr<Device> device = make_reference_device({});
    ModelRun run(GetParam().make(Precision::fp64, layout), *device, 3);
    const std::map<std::string, Values> initial = run.state();
    run.step();
    std::map<std::string, Values> gradients;
    for (const ModelParameter& p : run.model().parameters) gradients[p.name] = run.read(p.gradient);
    const auto loss_at = [&](const ModelParameter& moved, const Values& d, double step) {
      for (const ModelParameter& p : run.model().parameters) {
        Values w = initial.at(p.name);
        for (size_t i = 0; p.name == moved.name && i < w.size(); ++i) w[i] += step * d[i];
        run.write(p.master, w);
      }
      return run.step();
    };
    for (const ModelParameter& p : run.model().parameters) {
      const Values& g = gradients.at(p.name);
      const Values d = direction(p.name, g.size());
      const double expected = (loss_at(p, d, kStep) - loss_at(p, d, -kStep)) / (2 * kStep);
      const double size = std::sqrt(dot(g, g) * dot(d, d));
      EXPECT_GT(size, 0) << p.name << " has no gradient";
      // The two losses round at about 1e-15 each, over a difference of 2e-7; the curvature adds its square.
      EXPECT_NEAR(dot(g, d), expected, 1e-6 * size + 5e-8) << p.name;
    }
  }
}

}  // namespace
}  // namespace dlbench::test
