#include "cuda_emulation/emulator/fault.h"

#include <ucontext.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cuda_emulation/emulator/block.h"
#include "cuda_emulation/emulator/memory.h"
#include "cuda_emulation/emulator/sanitizer.h"
#include "cuda_emulation/emulator/stream.h"

namespace dlbench::cuda_emulation {
namespace {

struct sigaction previous_action;

// "read" or "wrote", where the processor says so.
const char* access_word(const void* context) {
#if defined(__x86_64__)
  constexpr greg_t kWrite = 2;  // page-fault error code, bit 1 (Intel SDM vol. 3, "Page-Fault Exceptions")
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & kWrite ? "wrote" : "read";
#else
  return context ? "accessed" : "used";
#endif
}

std::string place(const Allocation& a, const void* address) {
  const auto* byte = static_cast<const uint8_t*>(address);
  const std::string name = fmt::format("device allocation #{} ({} bytes)", a.number, a.bytes);
  if (a.freed) return fmt::format("{}, which has been freed", name);
  if (byte < a.pointer) return fmt::format("{} bytes before the start of {}", a.pointer - byte, name);
  if (byte >= a.pointer + a.bytes) {
    return fmt::format("{} bytes past the end of {}", byte - (a.pointer + a.bytes) + 1, name);
  }
  return fmt::format("byte {} of {}", byte - a.pointer, name);
}

// A fault inside the code of this process, so everything that code may call may be called here.
void on_fault(int signal, siginfo_t* info, void* context) {
  DeviceMemory& memory = DeviceMemory::instance();
  if (const Allocation* a = memory.find(info->si_addr)) {
    const std::string where = place(*a, info->si_addr);
    const std::string culprit = running();
    if (culprit.empty()) {
      std::fprintf(stderr, "CUDA emulation: the host %s %s; device memory is reached by copies only\n",
                   access_word(context), where.c_str());
    } else {
      std::fprintf(stderr, "CUDA emulation: %s %s %s\n", culprit.c_str(), access_word(context), where.c_str());
    }
    std::fflush(stderr);
    std::signal(signal, SIG_DFL);
    return;  // the instruction faults again and ends the process
  }
  sigaction(signal, &previous_action, nullptr);
}

#if defined(__SANITIZE_ADDRESS__)
void on_asan_report(const char*) {
  const void* address = __asan_get_report_address();
  const Allocation* a = DeviceMemory::instance().find(address);
  if (!a) return;
  const std::string culprit = running();
  std::fprintf(stderr, "CUDA emulation: %s %s %s\n", culprit.empty() ? "the host" : culprit.c_str(),
               __asan_get_report_access_type() ? "wrote" : "read", place(*a, address).c_str());
}
#endif

}  // namespace

void fail(const std::string& sentence) {
  std::fprintf(stderr, "CUDA emulation: %s\n", sentence.c_str());
  std::fflush(stderr);
  std::abort();
}

std::string running() {
  const std::string thread = BlockRunner::instance().running_thread();
  return thread.empty() ? Streams::instance().running_command() : thread;
}

void install_fault_handler() {
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous_action);
#if defined(__SANITIZE_ADDRESS__)
  __asan_set_error_report_callback(on_asan_report);
#endif
}

}  // namespace dlbench::cuda_emulation
