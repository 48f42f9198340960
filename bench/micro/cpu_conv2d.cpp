// cpu_conv2d: the convolution of the CPU backend against im2col and OpenBLAS, for the layers of ResNet-50 and of `cnn`.
//
// The other side is what a program without a convolution library does: one image is unfolded at a time (a 1x1 layer
// with stride 1 isn't) and multiplied by OpenBLAS with all threads, which gives it [N,K,P,Q]. Its unfolding is plain
// C++ on all threads. Results are compared before anything is timed; the two are timed in turns; printed is the median
// of the turns' ratios. Exit code 1 when a result is wrong, or three quarters of a layer's turns are below --goal.
#include <cblas.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "cpu/device.h"
#include "micro/interleaved.h"

namespace dlbench::micro {
namespace {

struct Layer {
  const char* name;
  int count;  ///< of such layers in a model
  int64_t c, size, k, r, stride, pad;
};

// He et al. 2016, with the stride in the 3x3 as torchvision has it.
const std::vector<Layer> kResNet50{
    {"conv1 7x7/2", 1, 3, 224, 64, 7, 2, 3},         {"2.a 1x1 64-64", 1, 64, 56, 64, 1, 1, 0},
    {"2.b 3x3 64", 3, 64, 56, 64, 3, 1, 1},          {"2.c 1x1 64-256", 4, 64, 56, 256, 1, 1, 0},
    {"2.a 1x1 256-64", 2, 256, 56, 64, 1, 1, 0},     {"3.a 1x1 256-128", 1, 256, 56, 128, 1, 1, 0},
    {"3.b 3x3/2 128", 1, 128, 56, 128, 3, 2, 1},     {"3.b 3x3 128", 3, 128, 28, 128, 3, 1, 1},
    {"3.c 1x1 128-512", 4, 128, 28, 512, 1, 1, 0},   {"3.d 1x1/2 256-512", 1, 256, 56, 512, 1, 2, 0},
    {"3.a 1x1 512-128", 3, 512, 28, 128, 1, 1, 0},   {"4.a 1x1 512-256", 1, 512, 28, 256, 1, 1, 0},
    {"4.b 3x3/2 256", 1, 256, 28, 256, 3, 2, 1},     {"4.b 3x3 256", 5, 256, 14, 256, 3, 1, 1},
    {"4.c 1x1 256-1024", 6, 256, 14, 1024, 1, 1, 0}, {"4.d 1x1/2 512-1024", 1, 512, 28, 1024, 1, 2, 0},
    {"4.a 1x1 1024-256", 5, 1024, 14, 256, 1, 1, 0}, {"5.a 1x1 1024-512", 1, 1024, 14, 512, 1, 1, 0},
    {"5.b 3x3/2 512", 1, 512, 14, 512, 3, 2, 1},     {"5.b 3x3 512", 2, 512, 7, 512, 3, 1, 1},
    {"5.c 1x1 512-2048", 3, 512, 7, 2048, 1, 1, 0},  {"5.d 1x1/2 1024-2048", 1, 1024, 14, 2048, 1, 2, 0},
    {"5.a 1x1 2048-512", 2, 2048, 7, 512, 1, 1, 0},
};
const std::vector<Layer> kCnn{{"cnn 3x3 3-32", 1, 3, 32, 32, 3, 1, 1}, {"cnn 3x3 32-64", 1, 32, 16, 64, 3, 1, 1}};

/// im2col and OpenBLAS on [N,C,H,W].
class Unfolded {
 public:
  Unfolded(cpu::Team& team, const Conv2dSpec& s)
      : team_(team),
        s_(s),
        plain_(s.r == 1 && s.s == 1 && s.stride == 1 && s.pad == 0),
        rows_(s.c * s.r * s.s),
        columns_(s.p() * s.q()),
        unfolded_(plain_ ? 0 : static_cast<size_t>(rows_ * columns_)) {}

  void forward(const float* x, const float* w, float* y) {
    for (int64_t n = 0; n < s_.n; ++n) {
      const float* columns = unfold(x + n * s_.c * s_.h * s_.w);
      gemm(CblasNoTrans, CblasNoTrans, s_.k, columns_, rows_, w, rows_, columns, columns_, 0, y + n * s_.k * columns_);
    }
  }
  void backward_data(const float* dy, const float* w, float* dx) {
    for (int64_t n = 0; n < s_.n; ++n) {
      float* image = dx + n * s_.c * s_.h * s_.w;
      float* columns = plain_ ? image : unfolded_.data();
      gemm(CblasTrans, CblasNoTrans, rows_, columns_, s_.k, w, rows_, dy + n * s_.k * columns_, columns_, 0, columns);
      if (!plain_) fold(image);
    }
  }
  void backward_weights(const float* x, const float* dy, float* dw) {
    for (int64_t n = 0; n < s_.n; ++n) {
      const float* columns = unfold(x + n * s_.c * s_.h * s_.w);
      gemm(CblasNoTrans, CblasTrans, s_.k, rows_, columns_, dy + n * s_.k * columns_, columns_, columns, columns_,
           n == 0 ? 0.0f : 1.0f, dw);
    }
  }

 private:
  void gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda,
            const float* b, int64_t ldb, float beta, float* c) {
    team_.stand_down();
    cblas_sgemm(CblasRowMajor, ta, tb, static_cast<blasint>(m), static_cast<blasint>(n), static_cast<blasint>(k), 1.0f,
                a, static_cast<blasint>(lda), b, static_cast<blasint>(ldb), beta, c, static_cast<blasint>(n));
  }
  /// visit(channel, place of the channel's row of the matrix, r, s), channels over threads.
  template <typename Visit>
  void each_row(const Visit& visit) {
    team_.parallel_for(s_.c, 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        for (int64_t r = 0; r < s_.r; ++r)
          for (int64_t t = 0; t < s_.s; ++t) visit(c, ((c * s_.r + r) * s_.s + t) * columns_, r, t);
    });
  }
  const float* unfold(const float* image) {
    if (plain_) return image;
    each_row([&](int64_t c, int64_t row, int64_t r, int64_t t) {
      for (int64_t p = 0; p < s_.p(); ++p) {
        const int64_t h = p * s_.stride + r - s_.pad;
        float* out = unfolded_.data() + row + p * s_.q();
        for (int64_t q = 0; q < s_.q(); ++q) {
          const int64_t v = q * s_.stride + t - s_.pad;
          out[q] = h >= 0 && h < s_.h && v >= 0 && v < s_.w ? image[(c * s_.h + h) * s_.w + v] : 0.0f;
        }
      }
    });
    return unfolded_.data();
  }
  void fold(float* image) {
    team_.parallel_for(s_.c, 1, 1, [&](int64_t begin, int64_t end) {
      std::fill(image + begin * s_.h * s_.w, image + end * s_.h * s_.w, 0.0f);
    });
    each_row([&](int64_t c, int64_t row, int64_t r, int64_t t) {
      for (int64_t p = 0; p < s_.p(); ++p) {
        const int64_t h = p * s_.stride + r - s_.pad;
        if (h < 0 || h >= s_.h) continue;
        const float* in = unfolded_.data() + row + p * s_.q();
        for (int64_t q = 0; q < s_.q(); ++q) {
          const int64_t v = q * s_.stride + t - s_.pad;
          if (v >= 0 && v < s_.w) image[(c * s_.h + h) * s_.w + v] += in[q];
        }
      }
    });
  }
  cpu::Team& team_;
  Conv2dSpec s_;
  bool plain_;
  int64_t rows_, columns_;
  std::vector<float> unfolded_;
};

void to_nhwc(const float* from, int64_t n, int64_t c, int64_t pixels, float* to) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < c; ++j)
      for (int64_t p = 0; p < pixels; ++p) to[(i * pixels + p) * c + j] = from[(i * c + j) * pixels + p];
}

double largest_error(const float* got, const std::vector<float>& expected) {
  double error = 0, square = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    error = std::max(error, std::fabs(static_cast<double>(got[i]) - static_cast<double>(expected[i])));
    square += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
  }
  return error / std::sqrt(square / static_cast<double>(std::max<size_t>(1, expected.size())) + 1e-30);
}

struct Outcome {
  double ratio = 0, upper = 0, spread = 0, seconds = 0, error = 0, bound = 0;
};

Outcome compare(cpu::CpuDevice& device, const Conv2dSpec& s, ConvPass pass, bool alone, int turns,
                double turn_seconds) {
  Ops& ops = device.ops();
  const int64_t nx = s.n * s.c * s.h * s.w, nw = s.k * s.c * s.r * s.s, ny = s.n * s.k * s.p() * s.q();
  const auto buffer = [&](int64_t n) { return DeviceBuffer(device, static_cast<size_t>(std::max<int64_t>(n, 1)) * 4); };
  DeviceBuffer x = buffer(nx), w = buffer(nw), y = buffer(ny), xt = buffer(nx), wt = buffer(nw), yt = buffer(ny);
  ops.fill_normal({.n = nx, .seed = 1}, x.data());
  ops.fill_normal({.n = nw, .seed = 2}, w.data());
  ops.fill_normal({.n = ny, .seed = 3}, y.data());
  const auto f = [](DeviceBuffer& b) { return static_cast<float*>(b.data()); };
  to_nhwc(f(x), s.n, s.c, s.h * s.w, f(xt));
  to_nhwc(f(w), s.k, s.c, s.r * s.s, f(wt));
  to_nhwc(f(y), s.n, s.k, s.p() * s.q(), f(yt));
  DeviceBuffer workspace(device, static_cast<size_t>(ops.conv2d_workspace_bytes(s, pass)));
  Unfolded other(device.team(), s);
  Side ours, theirs;
  int64_t length = 0, size = 0, channels = 0, count = 0;
  float *result = nullptr, *expected = nullptr;
  switch (pass) {
    case ConvPass::forward:
      ours.call = [&] { ops.conv2d_forward(s, xt.data(), wt.data(), nullptr, yt.data(), workspace.data()); };
      theirs.call = [&] { other.forward(f(x), f(w), f(y)); };
      length = s.c * s.r * s.s, size = ny, count = s.n, channels = s.k, result = f(yt), expected = f(y);
      break;
    case ConvPass::backward_data:
      ours.call = [&] { ops.conv2d_backward_data(s, yt.data(), wt.data(), xt.data(), workspace.data()); };
      theirs.call = [&] { other.backward_data(f(y), f(w), f(x)); };
      length = s.k * s.r * s.s, size = nx, count = s.n, channels = s.c, result = f(xt), expected = f(x);
      break;
    case ConvPass::backward_weights:
      ours.call = [&] { ops.conv2d_backward_weights(s, xt.data(), yt.data(), wt.data(), nullptr, workspace.data()); };
      theirs.call = [&] { other.backward_weights(f(x), f(y), f(w)); };
      length = s.n * s.p() * s.q(), size = nw, count = s.k, channels = s.c, result = f(wt), expected = f(w);
      break;
  }
  const int threads = device.info().threads;
  theirs.before_turn = [&] {
    device.team().stand_down();
    openblas_set_num_threads(threads);
  };
  ours.before_turn = [] { openblas_set_num_threads(1); };
  ours.call();
  theirs.before_turn();
  theirs.call();
  ours.before_turn();
  std::vector<float> expected_nhwc(static_cast<size_t>(size));
  to_nhwc(expected, count, channels, size / std::max<int64_t>(1, count * channels), expected_nhwc.data());
  Outcome o;
  o.error = largest_error(result, expected_nhwc);
  o.bound = 4e-7 * std::sqrt(static_cast<double>(length)) + 2e-6;
  if (!(o.error <= o.bound)) return o;
  std::vector<Side> sides{ours};
  if (!alone) sides.push_back(theirs);
  const auto seconds = time_in_turns(sides, turns, turn_seconds);
  openblas_set_num_threads(1);
  o.seconds = median(seconds[0]);
  if (alone) return o;
  std::vector<double> ratios;
  for (size_t t = 0; t < seconds[0].size(); ++t) ratios.push_back(seconds[1][t] / seconds[0][t]);
  o.ratio = median(ratios);
  std::sort(ratios.begin(), ratios.end());
  o.upper = ratios[ratios.size() * 3 / 4];
  o.spread = ratios[ratios.size() * 3 / 4] - ratios[ratios.size() / 4];
  return o;
}

}  // namespace
}  // namespace dlbench::micro

int main(int argc, char** argv) {
  using namespace dlbench;
  using namespace dlbench::micro;
  CLI::App app{"The CPU backend's convolution against im2col and OpenBLAS, for the layers of ResNet-50 and cnn"};
  std::string filter, only;
  int turns = 5, threads = 0;
  int64_t batch = 1;
  double goal = 1.0;
  bool alone = false;
  app.add_option("--filter", filter, "Only layers whose name contains this");
  app.add_option("--pass", only, "forward, backward_data or backward_weights");
  app.add_option("--batch", batch, "Images");
  app.add_option("--turns", turns, "Turns per layer");
  app.add_option("--threads", threads, "Threads of either side; 0: every usable CPU");
  app.add_option("--goal", goal, "Ratio that every layer must reach");
  app.add_flag("--alone", alone, "Time this side only");
  CLI11_PARSE(app, argc, argv);
  cpu::CpuDevice device({.threads = threads});
  int below = 0, wrong = 0, count = 0;
  double total_seconds = 0, total_flops = 0;
  fmt::print("{:22} {:17} {:>7} {:>6} {:>9} {:>9}\n", "layer", "pass", "ratio", "+-", "ms", "GFLOP/s");
  for (const bool cnn : {false, true}) {
    for (const Layer& l : cnn ? kCnn : kResNet50) {
      if (std::string(l.name).find(filter) == std::string::npos) continue;
      const Conv2dSpec s{.layout = ImageLayout::nhwc,
                         .n = batch,
                         .c = l.c,
                         .h = l.size,
                         .w = l.size,
                         .k = l.k,
                         .r = l.r,
                         .s = l.r,
                         .stride = l.stride,
                         .pad = l.pad};
      for (const auto& [pass, name] :
           {std::pair{ConvPass::forward, "forward"}, std::pair{ConvPass::backward_data, "backward_data"},
            std::pair{ConvPass::backward_weights, "backward_weights"}}) {
        if (!only.empty() && only != name) continue;
        if (l.c == 3 && pass == ConvPass::backward_data) continue;  // nothing lies before the first layer
        const Outcome o = compare(device, s, pass, alone, turns, 0.004);
        const double flops = cost_of(s, pass).flops;
        const bool bad = !(o.error <= o.bound), low = !alone && !bad && o.upper < goal;
        ++count, wrong += bad, below += low;
        if (!cnn) total_seconds += o.seconds * l.count, total_flops += flops * l.count;
        fmt::print("{:22} {:17} {:7.2f} {:6.2f} {:9.3f} {:9.1f}{}\n", l.name, name, o.ratio, o.spread, o.seconds * 1e3,
                   flops / o.seconds * 1e-9,
                   bad   ? fmt::format("  WRONG RESULT: error {:.2e}, bound {:.2e}", o.error, o.bound)
                   : low ? std::string("  BELOW GOAL")
                         : std::string());
      }
    }
  }
  fmt::print("{} rows, {} below their goal, {} wrong\n", count, below, wrong);
  if (total_seconds > 0)
    fmt::print("all listed layers of ResNet-50, each as often as it occurs: {:.1f} ms, {:.1f} GFLOP/s\n",
               total_seconds * 1e3, total_flops / total_seconds * 1e-9);
  return below + wrong > 0 ? 1 : 0;
}
