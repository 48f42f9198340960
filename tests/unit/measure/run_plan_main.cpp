// The test program of run_plan: with the argument `worker` it is a worker, as dlbench itself is.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <thread>

#include "core/base/error.h"
#include "core/measure/worker.h"
#include "unit/measure/fault_workload.h"
#include "unit/measure/test_workload.h"

namespace dlbench::test {

namespace {

void step_of(const std::string& kind, Device& device) {
  if (kind == "crash") std::abort();
  if (kind == "kill") ::kill(::getpid(), SIGKILL);
  if (kind == "hang") std::this_thread::sleep_for(std::chrono::minutes(2));
  if (kind == "throw") throw std::runtime_error("planted error");
  if (kind == "oom") throw OutOfMemoryError("wanted 3 GiB, 1 GiB was free");
  if (kind == "lost") throw DeviceLostError("planted sticky error");
  if (kind == "unsupported") throw UnsupportedError("planted absence");
  if (kind == "chatty") {
    std::cerr << "last words of the worker" << std::endl;
    std::cout << "and a line on standard output" << std::endl;
    std::abort();
  }
  device.ops().noop();
}

std::unique_ptr<Workload> create(const Point& point) {
  const std::string kind = point.word("kind");
  return std::make_unique<LambdaWorkload>(std::vector<BufferSpec>{},
                                          [kind](Device& device, const Binding&) { step_of(kind, device); });
}

WorkloadDescriptor make_descriptor() {
  WorkloadDescriptor d;
  d.name = "fault";
  d.workload_class = "test";
  d.summary = "planted faults";
  d.sweep_axis = "n";
  AxisSpec kind{.name = "kind", .kind = AxisKind::word, .fallback = "ok"};
  kind.words = {"ok", "crash", "kill", "hang", "throw", "oom", "lost", "unsupported", "chatty"};
  AxisSpec n{.name = "n"};
  d.axes = {kind, n};
  d.precisions = {Precision::fp32};
  d.create = create;
  return d;
}

}  // namespace

const WorkloadCatalog& fault_catalog() {
  static const WorkloadDescriptor descriptor = make_descriptor();
  static const WorkloadCatalog catalog({&descriptor});
  return catalog;
}

}  // namespace dlbench::test

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "worker") {
    try {
      return dlbench::run_worker(STDIN_FILENO, dlbench::kWorkerAnswers, dlbench::test::fault_catalog());
    } catch (const std::exception& error) {
      std::cerr << error.what() << std::endl;
      return 3;
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
