#include <gmock/gmock.h>

#include <cmath>

#include "core/base/error.h"
#include "core/device/meta_device.h"
#include "core/device/reference_device.h"
#include "core/measure/buffers.h"
#include "core/measure/verify.h"
#include "unit/workloads/every_point.h"
#include "workloads/catalog.h"

namespace dlbench {
namespace {

using test::every_point;

class EveryWorkload : public testing::TestWithParam<const WorkloadDescriptor*> {};

INSTANTIATE_TEST_SUITE_P(Catalog, EveryWorkload, testing::ValuesIn(workload_catalog().all()),
                         [](const auto& each) { return each.param->name; });

std::string device_of(Side side) {
  return side == Side::gpu ? "meta:gpu" : "meta:cpu";
}

/// What the meta device counts in one step, each buffer allocated as the harness does.
Cost counted_cost(Workload& workload, MetaDevice& device) {
  workload.prepare(device);
  const BufferSets buffers(device, workload.buffers(), 1, 1);
  const Cost before = device.total_cost();
  workload.step(device, buffers.binding(0));
  device.synchronize();
  const Cost after = device.total_cost();
  return {.flops = after.flops - before.flops,
          .bytes_read = after.bytes_read - before.bytes_read,
          .bytes_written = after.bytes_written - before.bytes_written};
}

TEST_P(EveryWorkload, DeclaresTheWorkThatTheMetaDeviceCounts) {
  for (const Side side : GetParam()->sides) {
    for (const Point& point : every_point(*GetParam(), device_of(side))) {
      const std::unique_ptr<MetaDevice> device = make_meta_device(side, {});
      const std::unique_ptr<Workload> workload = create_workload(*GetParam(), point);
      if (workload->supported_by(*device).level == SupportLevel::no) continue;
      const Cost counted = counted_cost(*workload, *device);
      const Cost declared = workload->device_cost(*device).value_or(workload->work().cost);
      if (point.workload == "transfer") {  // a copy is no op: nothing is counted, all of it is on the link
        EXPECT_EQ(declared.bytes(), 4 * 123);
        continue;
      }
      EXPECT_EQ(declared.flops, counted.flops) << point.key();
      EXPECT_EQ(declared.bytes_read, counted.bytes_read) << point.key();
      EXPECT_EQ(declared.bytes_written, counted.bytes_written) << point.key();
    }
  }
}

TEST_P(EveryWorkload, EstimatesTheBytesOfItsBuffers) {
  for (const Side side : GetParam()->sides) {
    const std::unique_ptr<MetaDevice> device = make_meta_device(side, {});
    for (const Point& point : every_point(*GetParam(), device_of(side))) {
      const std::unique_ptr<Workload> workload = create_workload(*GetParam(), point);
      const int64_t guards = 2 * static_cast<int64_t>(BufferSets::kGuardBytes * workload->buffers().size());
      EXPECT_EQ(tensor_bytes_of(*workload) + guards, bytes_needed(workload->buffers(), 1)) << point.key();
      const Work work = workload->work();
      EXPECT_FALSE(work.sample_unit.empty()) << point.key();
      EXPECT_GT(work.samples, 0) << point.key();
      const int64_t free_before = device->free_memory();
      const BufferSets buffers(*device, workload->buffers(), 1, 1);
      EXPECT_GE(free_before - device->free_memory(), tensor_bytes_of(*workload)) << point.key();
    }
  }
}

TEST_P(EveryWorkload, HasKeysThatReadBack) {
  for (const Side side : GetParam()->sides) {
    for (const Point& point : every_point(*GetParam(), device_of(side))) {
      EXPECT_EQ(parse_point_key(point.key(), workload_catalog()).key(), point.key());
    }
  }
}

TEST_P(EveryWorkload, IsVerifiedOnTheReferenceDevice) {
  const std::unique_ptr<Device> device = make_reference_device({});
  int verified = 0;
  for (Point& point : every_point(*GetParam(), GetParam()->sides.front() == Side::gpu ? "gpu:0" : "reference")) {
    const std::unique_ptr<Workload> workload = create_workload(*GetParam(), point);
    if (workload->supported_by(*device).level == SupportLevel::no) continue;
    // The layers over tokens are too large for naive loops; they run the code of the smaller ones. Of a model's step a
    // sample of each op is computed; the largest models are left to other tests all the same.
    const bool model = workload->model() != nullptr;
    if (workload->work().cost.flops > (model ? 1.2e10 : 1e6)) continue;
    if (model && point.word("cache") == "rotate") continue;  // the same step
    workload->prepare(*device);
    const Verification check = verify(*workload, *device, 7, model ? 1e7 : 0);
    EXPECT_TRUE(check.ok) << point.key() << ": " << check.message;
    if (model) {
      EXPECT_TRUE(check.how == "full" || check.how == "sampled") << point.key();
      EXPECT_EQ(check.error, 0) << point.key() << ": reference differs from itself";
    } else {
      EXPECT_EQ(check.how, workload->verifiable_by_reference() ? "full" : "self") << point.key();
    }
    ++verified;
  }
  EXPECT_GT(verified, 0);
}

/// The largest magnitude in the last buffer after many steps.
double largest_after(const std::string& key, int64_t steps) {
  const Point point = parse_point_key(key, workload_catalog());
  const std::unique_ptr<Workload> workload = create_workload(*workload_catalog().find(point.workload), point);
  const std::unique_ptr<Device> device = make_reference_device({});
  const BufferSets buffers(*device, workload->buffers(), 1, 3);
  for (int64_t i = 0; i < steps; ++i) workload->step(*device, buffers.binding(0));
  const HostTensor result = buffers.read(workload->buffers().size() - 1);
  double largest = 0;
  for (int64_t i = 0; i < result.size(); ++i) largest = std::max(largest, std::fabs(result.at(i)));
  return largest;
}

TEST(Axpy, StaysFiniteOverAMillionSteps) {
  for (const std::string precision : {"fp32", "bf16", "fp16"}) {
    const double largest = largest_after("axpy/n=16/batch=1/precision=" + precision + "/device=reference", 1000000);
    EXPECT_LT(largest, 3500) << precision;
    EXPECT_GT(largest, 1) << precision;
  }
}

std::unique_ptr<Workload> workload_at(const std::string& key) {
  const Point point = parse_point_key(key, workload_catalog());
  return create_workload(*workload_catalog().find(point.workload), point);
}

TEST(Gemm, HasTheShapesOfItsFamilies) {
  const auto shapes = [](const std::string& axes) {
    std::string text;
    const std::unique_ptr<Workload> workload = workload_at("gemm/" + axes + "/device=cpu");
    for (const BufferSpec& b : workload->buffers()) {
      text += b.name + to_string(b.shape) + " ";
    }
    return text;
  };
  EXPECT_EQ(shapes("family=square/batch=96"), "a[96, 96] b[96, 96] c[96, 96] ");
  EXPECT_EQ(shapes("family=linear/layer=gpt2_small_qkv/batch=2"),
            "x[2048, 768] w[2304, 768] bias[2304] y[2048, 2304] ");
  EXPECT_EQ(shapes("family=linear/layer=mlp_base_fc1/pass=dgrad/batch=8"), "dy[8, 1024] w[1024, 784] dx[8, 784] ");
  EXPECT_EQ(shapes("family=linear/layer=mlp_base_fc1/pass=wgrad/batch=8"), "dy[8, 1024] x[8, 784] dw[1024, 784] ");
  EXPECT_EQ(shapes("family=linear/layer=custom/n=7/k=9/epilogue=none/batch=8"), "x[8, 9] w[7, 9] y[8, 7] ");
  EXPECT_EQ(shapes("family=attention/product=qk/seq=16/head_dim=8/batch=12"),
            "q[12, 16, 8] k[12, 16, 8] s[12, 16, 16] ");
  EXPECT_EQ(shapes("family=attention/product=pv/seq=16/head_dim=8/batch=12"),
            "p[12, 16, 16] v[12, 16, 8] o[12, 16, 8] ");
}

TEST(Gemm, CountsTwoFlopsPerMultiplyAdd) {
  const Work work = workload_at("gemm/family=linear/layer=resnet50_fc/batch=8/device=cpu")->work();
  EXPECT_EQ(work.cost.flops, 2.0 * 8 * 1000 * 2048 + 8 * 1000);
  EXPECT_EQ(work.samples, 8);
  EXPECT_EQ(work.sample_unit, "rows");
}

TEST(Conv2d, HasTheShapesOfItsLayers) {
  const std::unique_ptr<Workload> workload =
      workload_at("conv2d/layer=resnet50_layer2_0_conv2/pass=backward_weights/batch=4/device=cpu");
  ASSERT_EQ(workload->buffers().size(), 3u);
  EXPECT_EQ(to_string(workload->buffers()[0].shape), "[4, 128, 56, 56]");
  EXPECT_EQ(to_string(workload->buffers()[1].shape), "[4, 128, 28, 28]");
  EXPECT_EQ(to_string(workload->buffers()[2].shape), "[128, 128, 3, 3]");
  EXPECT_EQ(workload->work().cost.flops, 2.0 * 4 * 28 * 28 * 128 * 128 * 9);
  EXPECT_EQ(workload->work().sample_unit, "images");
  EXPECT_THROW(workload_at("conv2d/layer=custom/h=2/w=2/r=5/s=5/pad=1/device=cpu"), UsageError);
}

TEST(Optimizer, StaysFiniteOverManySteps) {
  for (const std::string op : {"sgd", "adamw"}) {
    for (const std::string precision : {"fp32", "bf16", "fp16"}) {
      const std::string key = "optimizer/op=" + op + "/n=16/precision=" + precision + "/device=reference";
      EXPECT_LT(largest_after(key, 200000), 1000) << key;
    }
  }
}

TEST(Membw, TouchesTheBytesOfItsAxis) {
  for (const std::string op : {"read", "copy", "triad"}) {
    const Work work = workload_at("membw/op=" + op + "/bytes=12582912/device=cpu")->work();
    EXPECT_NEAR(work.working_set_bytes, 12582912, 16) << op;
    EXPECT_NEAR(work.cost.bytes(), 12582912, 16) << op;
  }
}

TEST(Transfer, SeesBytesThatDidNotArrive) {
  const std::unique_ptr<Device> device = make_reference_device({});
  const std::unique_ptr<Workload> workload = workload_at("transfer/direction=to_host/bytes=64/device=gpu:0");
  workload->prepare(*device);
  EXPECT_TRUE(verify(*workload, *device, 7, 0).ok);
  const HostTensor other({16}, DType::f32);
  EXPECT_EQ(workload->verify_self(*device, {other}), "the bytes that arrived differ from the bytes that were sent");
}

TEST(Peak, SeesAChainThatSkippedARound) {
  const std::unique_ptr<Device> device = make_reference_device({});
  const std::unique_ptr<Workload> workload = workload_at("peak/iterations=1000/device=reference");
  HostTensor out({4}, DType::f32);
  for (int64_t i = 0; i < 4; ++i) out.set(i, 1000);
  EXPECT_EQ(workload->verify_self(*device, {out}), "");
  out.set(2, 999);
  EXPECT_THAT(workload->verify_self(*device, {out}), testing::StartsWith("chain 2 counted 999"));
}

}  // namespace
}  // namespace dlbench
