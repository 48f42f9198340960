#include "core/train/models.h"

#include <gmock/gmock.h>

#include <set>

#include "core/base/error.h"
#include "core/device/meta_device.h"
#include "core/measure/buffers.h"

namespace dlbench {
namespace {

struct Case {
  std::string name;
  TrainingModel (*make)(Precision, ImageLayout);
  int64_t parameters;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // 784*1024+1024 + 1024*1024+1024 + 1024*10+10
      {"mlp_base", [](Precision p, ImageLayout l) { return make_mlp(mlp_preset("base"), 3, p, l); }, 1863690},
      {"mlp_tiny", [](Precision p, ImageLayout l) { return make_mlp(mlp_preset("tiny"), 3, p, l); }, 101770},
      // 32*(27+1) + 64*(288+1) + 128*(4096+1) + 10*(128+1)
      {"cnn", [](Precision p, ImageLayout l) { return make_cnn({}, 3, p, l); }, 545098},
      // torchvision's own counts (docs of torchvision.models.resnet18 and resnet50, num_params)
      {"resnet18", [](Precision p, ImageLayout l) { return make_resnet(resnet_preset("resnet18", 224), 3, p, l); },
       11689512},
      {"resnet50", [](Precision p, ImageLayout l) { return make_resnet(resnet_preset("resnet50", 224), 3, p, l); },
       25557032},
      {"resnet50_32", [](Precision p, ImageLayout l) { return make_resnet(resnet_preset("resnet50", 32), 3, p, l); },
       // 25557032, the stem 64*3*3*3 instead of 64*3*7*7, the head 2048*10+10 instead of 2048*1000+1000
       25557032 - 64 * 3 * 40 - 990 * 2049},
      {"gpt2_nano", [](Precision p, ImageLayout) { return make_gpt2(gpt2_preset("nano"), 3, 17, p); },
       8192 * 128 + 1024 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128},
      // Hugging Face's gpt2 with the embedding counted once
      {"gpt2_small", [](Precision p, ImageLayout) { return make_gpt2(gpt2_preset("small"), 3, 17, p); }, 124439808}};
  return all;
}

class Models : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(All, Models, testing::ValuesIn(cases()), [](const auto& each) { return each.param.name; });

TEST_P(Models, HaveTheParametersOfTheOriginal) {
  for (const ImageLayout layout : {ImageLayout::nchw, ImageLayout::nhwc}) {
    const TrainingModel model = GetParam().make(Precision::fp32, layout);
    EXPECT_EQ(model.parameter_count, GetParam().parameters);
    int64_t sum = 0;
    std::set<std::string> names;
    for (const ModelParameter& p : model.parameters) {
      sum += p.count;
      names.insert(p.name);
      if (!p.view.order.empty()) {
        EXPECT_EQ(element_count(p.view.shape), p.count) << p.name;
      }
    }
    EXPECT_EQ(sum, GetParam().parameters);
    EXPECT_EQ(names.size(), model.parameters.size());
  }
}

/// First and last instruction that names each tensor of the arena.
struct Life {
  int64_t first = -1, last = -1;
};

TEST_P(Models, NoTwoLivingActivationsShareMemory) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    TrainingModel model = GetParam().make(precision, ImageLayout::nchw);
    const std::unique_ptr<MetaDevice> device = make_meta_device(Side::cpu, {});
    model.program.plan(&device->ops());
    std::map<TensorId, Life> lives;
    const auto& instructions = model.program.instructions();
    for (size_t i = 0; i < instructions.size(); ++i) {
      for (const Operand& operand : instructions[i].operands) {
        if (operand.tensor == kNoTensor) continue;
        if (model.program.buffers()[model.program.tensor(operand.tensor).buffer].name != "activations") continue;
        Life& life = lives[operand.tensor];
        if (life.first < 0) {
          EXPECT_EQ(operand.access, Access::write) << instructions[i].name << " reads what nobody wrote";
          life.first = static_cast<int64_t>(i);
        }
        life.last = static_cast<int64_t>(i);
      }
    }
    for (const auto& [a, life_a] : lives) {
      const ProgramTensor& x = model.program.tensor(a);
      EXPECT_LE(x.offset_bytes + x.bytes(), model.program.arena_bytes());
      for (const auto& [c, life_c] : lives) {
        if (c >= a || life_a.last < life_c.first || life_c.last < life_a.first) continue;
        const ProgramTensor& y = model.program.tensor(c);
        ASSERT_TRUE(x.offset_bytes + x.bytes() <= y.offset_bytes || y.offset_bytes + y.bytes() <= x.offset_bytes)
            << x.name << " and " << y.name;
      }
    }
  }
}

TEST_P(Models, NeedLittleMoreThanWhatIsAliveAtOnce) {
  TrainingModel model = GetParam().make(Precision::fp32, ImageLayout::nchw);
  model.program.plan(nullptr);
  EXPECT_LE(static_cast<double>(model.program.arena_bytes()),
            1.1 * static_cast<double>(model.program.arena_lower_bound()));
}

TEST_P(Models, WriteEachGradientOnce) {
  const TrainingModel model = GetParam().make(Precision::fp32, ImageLayout::nchw);
  std::map<TensorId, int> writes, updates;
  for (const Instruction& instruction : model.program.instructions()) {
    for (const Operand& operand : instruction.operands) {
      if (operand.access == Access::write) ++writes[operand.tensor];
      if (operand.access == Access::update) ++updates[operand.tensor];
    }
  }
  for (const ModelParameter& p : model.parameters) {
    const bool added = p.name == "wte.weight" || p.name == "wpe.weight";  // the head first, then the rows of the tokens
    EXPECT_EQ(writes[p.gradient], p.name == "wpe.weight" ? 0 : 1) << p.name;
    EXPECT_EQ(updates[p.gradient], added ? 1 : 0) << p.name;
  }
}

TEST_P(Models, MixedPrecisionKeepsMasterWeights) {
  const TrainingModel narrow = GetParam().make(Precision::bf16, ImageLayout::nchw);
  const TrainingModel wide = GetParam().make(Precision::fp32, ImageLayout::nchw);
  for (const ModelParameter& p : narrow.parameters) {
    EXPECT_EQ(narrow.program.tensor(p.master).dtype, DType::f32) << p.name;
    EXPECT_EQ(narrow.program.tensor(p.storage).dtype, DType::bf16) << p.name;
    EXPECT_EQ(narrow.program.tensor(p.gradient).dtype, DType::bf16) << p.name;
  }
  for (const ModelParameter& p : wide.parameters) EXPECT_EQ(p.master, p.storage) << p.name;
}

TEST_P(Models, RunOnTheMetaDeviceWithTheDeclaredWork) {
  TrainingModel model = GetParam().make(Precision::fp32, ImageLayout::nchw);
  const std::unique_ptr<MetaDevice> device = make_meta_device(Side::cpu, {});
  model.program.plan(&device->ops());
  const BufferSets buffers(*device, model.program.buffers(), 1, 1);
  const double before = device->total_cost().flops;
  model.program.run(device->ops(), buffers.binding(0));
  EXPECT_DOUBLE_EQ(device->total_cost().flops - before, model.program.cost().flops);
}

std::vector<std::string> names_of(const TrainingModel& model) {
  std::vector<std::string> names;
  for (const ModelParameter& p : model.parameters) names.push_back(p.name);
  return names;
}

TEST(ModelNames, AreThoseOfPyTorch) {
  EXPECT_THAT(names_of(make_mlp(mlp_preset("base"), 1, Precision::fp32, ImageLayout::nchw)),
              testing::ElementsAre("0.weight", "0.bias", "2.weight", "2.bias", "4.weight", "4.bias"));
  EXPECT_THAT(
      names_of(make_cnn({}, 1, Precision::fp32, ImageLayout::nchw)),
      testing::ElementsAre("0.weight", "0.bias", "3.weight", "3.bias", "7.weight", "7.bias", "9.weight", "9.bias"));
  const TrainingModel resnet = make_resnet(resnet_preset("resnet50", 224), 2, Precision::fp32, ImageLayout::nchw);
  EXPECT_THAT(names_of(resnet),
              testing::IsSupersetOf({"conv1.weight", "bn1.weight", "bn1.bias", "layer1.0.conv1.weight",
                                     "layer1.0.downsample.0.weight", "layer1.0.downsample.1.bias",
                                     "layer3.5.conv2.weight", "layer4.2.bn3.bias", "fc.weight", "fc.bias"}));
  EXPECT_EQ(resnet.parameters.size(), 161);
  EXPECT_EQ(resnet.running.size(), 2 * 53);
  EXPECT_EQ(resnet.running.front().name, "bn1.running_mean");
  EXPECT_THAT(names_of(make_gpt2(gpt2_preset("small"), 1, 8, Precision::fp32)),
              testing::IsSupersetOf({"wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.attn.c_attn.weight",
                                     "h.11.attn.c_proj.bias", "h.11.ln_2.bias", "h.3.mlp.c_fc.weight",
                                     "h.3.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"}));
}

TEST(ModelSizes, AreThoseOfThePapers) {
  // resnet50: 4.09 GMAC per image of 224x224 (torchvision's docs), forward; a step is three times that, less the
  // gradient of the images (the stem's 0.118 GMAC) and plus the passes that aren't products.
  TrainingModel model = make_resnet(resnet_preset("resnet50", 224), 1, Precision::fp32, ImageLayout::nchw);
  EXPECT_NEAR(model.program.cost().flops, 2 * (3 * 4.09e9 - 0.118e9), 0.05 * 2 * 3 * 4.09e9);
  // gpt2 small: 6 FLOPs per parameter and token (Kaplan et al. 2020); positions have none, attention adds little here.
  model = make_gpt2(gpt2_preset("small"), 4, 64, Precision::fp32);
  EXPECT_NEAR(model.program.cost().flops, 6.0 * 4 * 64 * 123.6e6, 0.05 * 6 * 4 * 64 * 123.6e6);
}

TEST(ModelErrors, NameWhatIsWrong) {
  EXPECT_THROW(mlp_preset("huge"), UsageError);
  EXPECT_THROW(resnet_preset("resnet34", 224), UsageError);
  EXPECT_THROW(gpt2_preset(""), UsageError);
  EXPECT_THROW(make_gpt2(gpt2_preset("nano"), 1, 1025, Precision::fp32), UsageError);
  EXPECT_THROW(make_mlp(mlp_preset("base"), int64_t{1} << 61, Precision::fp32, ImageLayout::nchw), std::exception);
  EXPECT_THROW(make_resnet(resnet_preset("resnet50", 224), int64_t{1} << 55, Precision::fp32, ImageLayout::nchw),
               std::exception);
}

}  // namespace
}  // namespace dlbench
