// on_gpu PROGRAM [ARGUMENTS…]: runs a test program on gpu:0, or exits with 77 ("skipped") and the reason why not.
//
// Why: a test of a device that isn't there is neither passed nor failed; CTest shows 77 as skipped.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "core/device/registry.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: on_gpu PROGRAM [ARGUMENTS...]\n");
    return 2;
  }
  dlbench::Registry registry{dlbench::Registry::Options{}};
  const dlbench::ProbeResult found = registry.look_up("gpu:0");
  if (found.absence != dlbench::Absence::none) {
    std::printf("skipped: %s\n", found.sentence.c_str());
    return 77;
  }
  setenv("DLBENCH_TEST_DEVICE", "gpu:0", 1);
  execv(argv[1], argv + 1);
  std::perror(argv[1]);
  return 2;
}
