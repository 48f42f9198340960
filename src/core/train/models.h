// The models that are trained: what each preset is, and the step of each as a program.
//
// mlp     torch.nn.Sequential(Linear, ReLU, …, Linear), SGD with momentum
// cnn     torch.nn.Sequential(Conv2d, ReLU, MaxPool2d, Conv2d, ReLU, MaxPool2d, Flatten, Linear, ReLU, Linear), the
// same resnet  torchvision's resnet18 and resnet50 (He et al. 2016; v1.5: the stride is in the 3x3), batch norm in
// training
//         mode, SGD with momentum 0.9 and weight decay 1e-4
// gpt2    Hugging Face's GPT2LMHeadModel without dropout (Radford et al. 2019), tanh GELU, tied embedding, AdamW
//
// Promises: parameters have the names that they have there, without a prefix; a config with smaller numbers is the same
// model, only smaller (tests use that); the loss is the mean cross-entropy of the batch.
#pragma once

#include <optional>
#include <string_view>

#include "core/train/model.h"

namespace dlbench {

struct MlpConfig {
  std::vector<int64_t> widths;  ///< inputs, hidden layers, classes
  OptimizerSettings optimizer{.lr = 0.01f, .momentum = 0.9f};
};
struct CnnConfig {
  int64_t image = 32, channels = 3;
  int64_t filters1 = 32, filters2 = 64, hidden = 128, classes = 10;
  OptimizerSettings optimizer{.lr = 0.01f, .momentum = 0.9f};
};
struct ResnetConfig {
  bool bottleneck = false;  ///< resnet50 and up
  std::vector<int64_t> blocks{2, 2, 2, 2};
  int64_t width = 64;  ///< filters of the first stage; doubled at each next one
  int64_t image = 224;
  bool large_stem = true;  ///< 7x7 with stride 2 and a max pool; else 3x3 (images of 32x32)
  int64_t classes = 1000;
  OptimizerSettings optimizer{.lr = 0.01f, .momentum = 0.9f, .weight_decay = 1e-4f};
};
struct Gpt2Config {
  int64_t layers = 4, heads = 4, channels = 128, vocabulary = 8192;
  int64_t positions = 1024;  ///< rows of the position table: no sequence is longer
  /// epsilon is that of Llama 2 (Touvron et al. 2023): with 1e-8 an element whose gradient is rounding noise (the
  /// bias of the keys has none at all) moves by the full learning rate in a direction that each implementation rolls.
  OptimizerSettings optimizer{.kind = OptimizerKind::adamw, .lr = 3e-4f, .weight_decay = 0.01f, .epsilon = 1e-5f};
};

std::vector<std::string> mlp_presets();
std::vector<std::string> resnet_presets();
std::vector<std::string> gpt2_presets();
/// @throws UsageError for an unknown name.
MlpConfig mlp_preset(std::string_view name);
/// @param image 224 or 32
ResnetConfig resnet_preset(std::string_view name, int64_t image);
Gpt2Config gpt2_preset(std::string_view name);

TrainingModel make_mlp(const MlpConfig& config, int64_t batch, Precision precision, ImageLayout layout);
TrainingModel make_cnn(const CnnConfig& config, int64_t batch, Precision precision, ImageLayout layout);
TrainingModel make_resnet(const ResnetConfig& config, int64_t batch, Precision precision, ImageLayout layout);
/// @param length T. @throws UsageError when it is longer than the position table.
TrainingModel make_gpt2(const Gpt2Config& config, int64_t batch, int64_t length, Precision precision);

}  // namespace dlbench
