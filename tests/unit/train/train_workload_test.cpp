// A training step in the harness: verified op by op, refused when its loss is no number, dumped for PyTorch.
#include "core/train/train_workload.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/device/reference_device.h"
#include "core/measure/dump.h"
#include "core/measure/loss_check.h"
#include "core/measure/runner.h"
#include "core/measure/verify.h"
#include "core/train/models.h"
#include "support/forwarding_device.h"
#include "support/model_run.h"

namespace dlbench::test {
namespace {

using testing::HasSubstr;

std::unique_ptr<Workload> small_mlp(float lr) {
  return std::make_unique<TrainWorkload>(
      [lr](int64_t batch, ImageLayout layout) {
        return make_mlp({.widths = {20, 16, 5}, .optimizer = {.lr = lr}}, batch, Precision::fp32, layout);
      },
      6, "samples");
}

const WorkloadCatalog& catalog() {
  static const WorkloadDescriptor exploding{
      .name = "exploding",
      .workload_class = "train",
      .summary = "a learning rate of 1e30",
      .sweep_axis = "",
      .create = [](const Point&) -> std::unique_ptr<Workload> { return small_mlp(1e30f); }};
  static const WorkloadCatalog all({&exploding});
  return all;
}

TEST(NaNLoss, MakesTheRowFailedWithTheStep) {
  const std::unique_ptr<Device> device = make_reference_device({});
  PlannedPoint planned;
  planned.point = {.workload = "exploding", .axes = {{"precision", "fp32"}, {"device", "reference"}}};
  planned.key = planned.point.key();
  Config config;
  config.measure.warmup_seconds = 0;
  const PointMeasurement m = measure_point(planned, config, catalog(), *device, 0, [] { return ProbeValues{}; });
  EXPECT_EQ(m.status, Status::failed);
  EXPECT_THAT(m.reason, testing::MatchesRegex("the loss is (NaN|infinite) at step [1-9] from the initial state.*"));
  EXPECT_TRUE(m.timing.wall_seconds.empty());
}

TEST(NaNLoss, IsFoundAtItsStep) {
  const std::unique_ptr<Device> device = make_reference_device({});
  const std::unique_ptr<Workload> workload = small_mlp(1e30f);
  workload->prepare(*device);
  BufferSets buffers(*device, workload->buffers(), 1, 4);
  int64_t first_bad = 0;
  for (int64_t step = 1; first_bad == 0 && step < 20; ++step) {
    workload->step(*device, buffers.binding(0));
    if (!loss_is_finite(*workload, buffers)) first_bad = step;
  }
  ASSERT_GT(first_bad, 1);
  EXPECT_THAT(describe_bad_loss(*workload, *device, buffers, 1000),
              HasSubstr("at step " + std::to_string(first_bad) + " "));
}

/// One op of the device goes slightly wrong.
class WrongOps : public ForwardingOps {
 public:
  explicit WrongOps(Ops& inner) : ForwardingOps(inner), inner_(inner) {}
  void cross_entropy(const RowsSpec& spec, const void* logits, const int32_t* targets, const TrainingState* state,
                     void* losses, void* dlogits) override {
    inner_.cross_entropy(spec, logits, targets, state, losses, dlogits);
  }
  void prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state, void* workspace) override {
    inner_.prepare_update(spec, gradient, state, workspace);
  }
  void sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master, void* momentum,
                void* parameter) override {
    inner_.sgd_step(spec, state, gradient, master, momentum, parameter);
  }
  void reduce(const ReduceSpec& spec, const void* x, void* y) override {
    ForwardingOps::reduce(spec, x, y);
    static_cast<float*>(y)[1] *= 1.001f;
  }

 private:
  Ops& inner_;
};

TEST(ProgramVerification, NamesTheOpThatIsWrong) {
  const std::unique_ptr<Workload> workload = small_mlp(0.01f);
  const std::unique_ptr<Device> right = make_reference_device({});
  workload->prepare(*right);
  const Verification good = verify(*workload, *right, 3, 0);
  EXPECT_TRUE(good.ok) << good.message;
  EXPECT_EQ(good.how, "full");
  EXPECT_EQ(good.fraction, 1);
  ForwardingDevice wrong(make_reference_device({}));
  wrong.set_ops(std::make_unique<WrongOps>(wrong.inner().ops()));
  const Verification bad = verify(*workload, wrong, 3, 0);
  EXPECT_FALSE(bad.ok);
  EXPECT_THAT(bad.message, HasSubstr("2 bias gradient (reduce): 2.bias gradient [5]"));
}

TEST(ProgramVerification, ShrinksABatchThatIsTooLargeForNaiveLoops) {
  const std::unique_ptr<Workload> workload = small_mlp(0.01f);
  EXPECT_EQ(workload->smaller(1e9), nullptr);
  const std::unique_ptr<Workload> less = workload->smaller(1);
  ASSERT_NE(less, nullptr);
  EXPECT_EQ(less->work().samples, 1);
}

class Dump : public testing::Test {
 protected:
  Dump() : folder(std::filesystem::path(testing::TempDir()) / "dlbench_dump_test") {
    std::filesystem::remove_all(folder);
  }
  ~Dump() override { std::filesystem::remove_all(folder); }
  void write(Workload& workload) {
    const std::unique_ptr<Device> device = make_reference_device({});
    dump_step(workload, {.workload = "mlp", .axes = {{"batch", int64_t{6}}, {"precision", "fp32"}}}, *device, 3,
              folder);
  }
  std::filesystem::path folder;
};

TEST_F(Dump, HoldsEveryTensorOfTheStep) {
  const std::unique_ptr<Workload> workload = small_mlp(0.01f);
  write(*workload);
  const Json manifest = read_json_file((folder / "manifest.json").string());
  EXPECT_EQ(manifest["key"], "mlp/batch=6/precision=fp32");
  EXPECT_EQ(manifest["hyperparameters"]["optimizer"], "sgd");
  std::map<std::string, int> roles;
  for (const Json& tensor : manifest["tensors"]) {
    ++roles[tensor["role"].get<std::string>()];
    EXPECT_TRUE(std::filesystem::exists(folder / tensor["file"].get<std::string>()));
  }
  EXPECT_EQ(roles, (std::map<std::string, int>{
                       {"input", 2}, {"parameter", 4}, {"output", 1}, {"gradient", 4}, {"updated", 4}}));
}

TEST_F(Dump, RefusesADirectoryThatHoldsSomething) {
  const std::unique_ptr<Workload> workload = small_mlp(0.01f);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "precious") << "x";
  EXPECT_THROW(write(*workload), UsageError);
  EXPECT_FALSE(std::filesystem::exists(folder / "manifest.json"));
}

TEST(TorchView, PermutesAndCuts) {
  HostTensor stored({2, 3, 4}, DType::f32);  // [n, h*w = 3, c = 4]
  for (int64_t i = 0; i < stored.size(); ++i) stored.set(i, static_cast<double>(i));
  const HostTensor nchw = torch_tensor(stored, {.stored = {2, 3, 4}, .order = {0, 2, 1}, .shape = {2, 4, 3}});
  EXPECT_EQ(nchw.shape(), (Shape{2, 4, 3}));
  EXPECT_EQ(nchw.at(1), 4);        // [0, 0, 1] is stored at [0, 1, 0]
  EXPECT_EQ(nchw.at(3), 1);        // [0, 1, 0] at [0, 0, 1]
  EXPECT_EQ(nchw.at(12 + 5), 21);  // [1, 1, 2] at [1, 2, 1]
}

TEST(TorchView, CutsPaddedRows) {
  HostTensor stored({2, 4}, DType::f32);
  for (int64_t i = 0; i < 8; ++i) stored.set(i, static_cast<double>(i));
  const HostTensor cut = torch_tensor(stored, {.stored = {2, 4}, .order = {0, 1}, .shape = {2, 1, 3}});
  EXPECT_EQ(cut.size(), 6);
  EXPECT_EQ(cut.at(2), 2);
  EXPECT_EQ(cut.at(3), 4);
}

TEST(Npy, HasNumPysHeader) {
  HostTensor tensor({3}, DType::bf16);
  tensor.set(0, 1.5);
  const std::string bytes = npy_bytes(tensor);
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_THAT(bytes, HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"));
  EXPECT_EQ(bytes.size() % 64, 12);  // an aligned header and three floats
  EXPECT_EQ(bytes[bytes.size() - 13], '\n');
}

}  // namespace
}  // namespace dlbench::test
