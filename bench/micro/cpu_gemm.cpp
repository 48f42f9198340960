// cpu_gemm: the matrix product of the CPU backend against OpenBLAS called directly, for every shape in configs/shapes.
//
// Goal: at least 1.0 times OpenBLAS with the better of one and all threads; at least 2.0 times for linear layers with a
// batch of 1 to 8. Each result is compared with OpenBLAS's before anything is timed. The three are timed in turns;
// printed and judged is the median of the turns' ratios. Exit code 1 when that of a shape is
// below its goal less --slack, or a result is wrong.
#include <cblas.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>

#include "core/base/json.h"
#include "cpu/device.h"
#include "micro/interleaved.h"

namespace dlbench::micro {
namespace {

struct Shape {
  std::string name;
  GemmSpec spec;
  double goal = 1.0;
};

std::vector<Shape> read_shapes(const std::string& folder, const std::string& filter) {
  std::vector<Shape> list;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    if (file.extension() != ".json" || file.filename().string().rfind("gemm_", 0) != 0) continue;
    const bool linear = file.filename() == "gemm_linear.json";
    const Json content = read_json_file(file.string());
    for (const Json& row : content.at("shapes")) {
      Shape s{.name = row.at("name").get<std::string>(), .spec = {}, .goal = 1.0};
      const std::string t = row.at("transposes").get<std::string>();
      s.spec.m = row.at("m").get<int64_t>(), s.spec.n = row.at("n").get<int64_t>(),
      s.spec.k = row.at("k").get<int64_t>();
      s.spec.batch = row.at("batch").get<int64_t>();
      s.spec.trans_a = t[0] == 'T' ? Transpose::yes : Transpose::no;
      s.spec.trans_b = t[1] == 'T' ? Transpose::yes : Transpose::no;
      const int64_t rows = s.spec.trans_a == Transpose::yes ? s.spec.k : s.spec.m;
      if (linear && rows <= 8) s.goal = 2.0;
      if (filter.empty() || s.name.find(filter) != std::string::npos) list.push_back(s);
    }
  }
  return list;
}

void open_blas(const GemmSpec& s, const float* a, const float* b, float* c) {
  const auto narrow = [](int64_t v) { return static_cast<blasint>(v); };
  for (int64_t matrix = 0; matrix < s.batch; ++matrix) {
    cblas_sgemm(CblasRowMajor, s.trans_a == Transpose::yes ? CblasTrans : CblasNoTrans,
                s.trans_b == Transpose::yes ? CblasTrans : CblasNoTrans, narrow(s.m), narrow(s.n), narrow(s.k), 1.0f,
                a + matrix * s.stride_a, narrow(s.lda), b + matrix * s.stride_b, narrow(s.ldb), 0.0f,
                c + matrix * s.stride_c, narrow(s.ldc));
  }
}

struct Outcome {
  double ratio = 0, spread = 0, gflop_per_s = 0;
  bool right = true;
  std::string plan;
};

Outcome compare(cpu::CpuDevice& device, const Shape& shape, int turns, double turn_seconds) {
  const GemmSpec s = shape.spec.resolved();
  auto& ops = static_cast<cpu::CpuOps&>(device.ops());
  const int64_t na = s.m * s.k * s.batch, nb = s.k * s.n * s.batch, nc = s.m * s.n * s.batch;
  DeviceBuffer a(device, static_cast<size_t>(na) * 4), b(device, static_cast<size_t>(nb) * 4),
      ours(device, static_cast<size_t>(nc) * 4), theirs(device, static_cast<size_t>(nc) * 4);
  ops.fill_normal({.n = na, .seed = 1}, a.data());
  ops.fill_normal({.n = nb, .seed = 2}, b.data());
  float *pa = static_cast<float*>(a.data()), *pb = static_cast<float*>(b.data()),
        *po = static_cast<float*>(ours.data()), *pt = static_cast<float*>(theirs.data());
  const int threads = device.info().threads;
  const auto use = [&](int count) {
    device.team().stand_down();
    openblas_set_num_threads(count);
  };
  use(threads);
  open_blas(s, pa, pb, pt);
  use(1);
  ops.gemm(shape.spec, pa, pb, nullptr, po, nullptr);
  Outcome outcome;
  const double tolerance = 1e-5 * std::sqrt(static_cast<double>(s.k)) * 4;
  for (int64_t i = 0; i < nc; ++i)
    outcome.right = outcome.right && std::fabs(static_cast<double>(po[i] - pt[i])) <= tolerance;
  outcome.plan = ops.describe_gemm(shape.spec);
  if (!outcome.right) return outcome;

  std::vector<Side> sides;
  sides.push_back({[&] { ops.gemm(shape.spec, pa, pb, nullptr, po, nullptr); }, [&] { openblas_set_num_threads(1); }});
  sides.push_back({[&] { open_blas(s, pa, pb, pt); }, [&] { use(1); }});
  if (threads > 1) sides.push_back({[&] { open_blas(s, pa, pb, pt); }, [&] { use(threads); }});
  const auto seconds = time_in_turns(sides, turns, turn_seconds);
  use(1);
  std::vector<double> ratios;
  size_t best = 1;
  if (threads > 1 && median(seconds[2]) < median(seconds[1])) best = 2;
  for (size_t t = 0; t < seconds[0].size(); ++t) ratios.push_back(seconds[best][t] / seconds[0][t]);
  outcome.ratio = median(ratios);
  std::sort(ratios.begin(), ratios.end());
  outcome.spread = ratios[ratios.size() * 3 / 4] - ratios[ratios.size() / 4];
  outcome.gflop_per_s = 2e-9 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
                        static_cast<double>(s.batch) / median(seconds[0]);
  return outcome;
}

}  // namespace
}  // namespace dlbench::micro

int main(int argc, char** argv) {
  CLI::App app{"The CPU backend's gemm against OpenBLAS called directly, for every shape in configs/shapes"};
  std::string folder = DLB_SHAPES_DIR, filter;
  bool quick = false;
  double slack = 0.0;
  int turns = 9, threads = 0;
  app.add_option("--shapes", folder, "Folder of the shape lists");
  app.add_option("--filter", filter, "Only shapes whose name contains this");
  app.add_option("--turns", turns, "Turns per shape");
  app.add_option("--threads", threads, "Threads of either side; 0: every usable CPU");
  app.add_option("--slack", slack, "Allowed shortfall from the goal, e.g. 0.03");
  app.add_flag("--quick", quick, "Fewer and shorter turns");
  CLI11_PARSE(app, argc, argv);
  dlbench::cpu::CpuDevice device({.threads = threads});
  int below = 0, wrong = 0, count = 0;
  fmt::print("{:34} {:>8} {:>7} {:>6} {:>9}  {}\n", "shape", "ratio", "+-", "goal", "GFLOP/s", "how");
  for (const auto& shape : dlbench::micro::read_shapes(folder, filter)) {
    const auto outcome = dlbench::micro::compare(device, shape, quick ? 5 : turns, quick ? 0.002 : 0.005);
    const bool low = outcome.ratio < shape.goal - slack;
    ++count, below += outcome.right && low, wrong += !outcome.right;
    fmt::print("{:34} {:8.2f} {:7.2f} {:6.1f} {:9.1f}  {}{}\n", shape.name, outcome.ratio, outcome.spread, shape.goal,
               outcome.gflop_per_s, outcome.plan,
               !outcome.right ? "  WRONG RESULT"
               : low          ? "  BELOW GOAL"
                              : "");
  }
  fmt::print("{} shapes, {} below their goal, {} wrong\n", count, below, wrong);
  return below + wrong > 0 ? 1 : 0;
}
