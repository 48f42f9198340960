#include "cpu/device.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <tbb/version.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "core/base/cpu_caches.h"
#include "core/base/error.h"
#include "core/base/memory_limit.h"
#include "core/base/usable_cpus.h"

#if defined(__SANITIZE_ADDRESS__)
#define DLB_ADDRESS_SANITIZER 1
#else
#define DLB_ADDRESS_SANITIZER 0
#endif

namespace dlbench::cpu {

namespace {

constexpr size_t kAlignment = 256;
/// From here on memory comes from mmap in multiples of a huge page.
constexpr size_t kLargeBytes = size_t{4} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
/// Smaller buffers are cut from slabs of this size: where small pages lie decides which lines of the L2 cache they share,
/// which differs from process to process and moved a dot product of 512 KiB by several per cent.
constexpr size_t kSlabBytes = size_t{8} << 20;
/// Left to the rest of the system by an allocation.
constexpr int64_t kReserveBytes = int64_t{64} << 20;

constexpr size_t round_up(size_t value, size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// A field of /proc/meminfo in bytes.
int64_t meminfo_bytes(const std::string& field) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon + 2 < line.size()) return line.substr(colon + 2);
  }
  return "CPU";
}

int64_t available_memory() {
  const int64_t available = meminfo_bytes("MemAvailable");
  const auto left = cgroup_memory().left_bytes;
  return std::max<int64_t>(0, (left && *left < available ? *left : available) - kReserveBytes);
}

[[noreturn]] void throw_out_of_memory(size_t bytes, int64_t available) {
  throw OutOfMemoryError(fmt::format(
      "cpu: {} bytes asked for, {} bytes available; use a smaller batch or stop other programs", bytes, available));
}

}  // namespace

DeviceInfo describe_cpu(const Blas& blas, int threads) {
  const UsableCpus cpus = usable_cpus();
  DeviceInfo info;
  info.id = "cpu";
  info.kind = "cpu";
  info.side = Side::cpu;
  info.name = cpu_model();
  const int64_t total = meminfo_bytes("MemTotal");
  const auto limit = cgroup_memory().limit_bytes;
  info.memory_bytes = limit && *limit < total ? *limit : total;
  info.threads = threads > 0 ? threads : cpus.count;
  info.facts["isa"] = vector_kernels().name;
  info.facts["affinity_cpus"] = std::to_string(cpus.affinity.size());
  info.facts["cgroup_quota_cpus"] = cpus.quota_cpus ? fmt::format("{:.2f}", *cpus.quota_cpus) : "none";
  info.facts["usable_cpus"] = std::to_string(cpus.count);
  info.facts["tbb_version"] = fmt::format("{}.{}", TBB_VERSION_MAJOR, TBB_VERSION_MINOR);
  info.facts["openblas_config"] = blas.facts.config;
  info.facts["openblas_core"] = blas.facts.core;
  info.facts["openblas_threading"] = threading_name(blas.facts.parallel);
  info.facts["openblas_library"] = blas.facts.library;
  info.facts["denormals"] = "flushed to zero";
  info.last_level_cache_bytes = last_level_cache_bytes().value_or(0);
  if (info.last_level_cache_bytes > 0)
    info.facts["last_level_cache_bytes"] = std::to_string(info.last_level_cache_bytes);
  return info;
}

CpuDevice::CpuDevice(const DeviceOptions& options) {
  const Blas& blas = Blas::instance();
  if (blas.absence != Absence::none) throw DeviceAbsentError(blas.sentence);
  const UsableCpus cpus = usable_cpus();
  if (options.threads < 0 || options.threads > cpus.count) {
    throw UsageError(
        fmt::format("cpu: {} threads asked for, {} CPUs may be used here (affinity {}, quota {}); ask for 1 to {}",
                    options.threads, cpus.count, cpus.affinity.size(),
                    cpus.quota_cpus ? fmt::format("{:.2f}", *cpus.quota_cpus) : "none", cpus.count));
  }
  info_ = describe_cpu(blas, options.threads);
  memory_at_start_ = available_memory();
  floating_point_state_ = enable_flush_to_zero();
  team_ = std::make_unique<Team>(info_.threads, cpus.affinity);
  CpuThresholds thresholds;
  thresholds.last_level_cache_bytes = last_level_cache_bytes().value_or(thresholds.last_level_cache_bytes);
  ops_ = std::make_unique<CpuOps>(*team_, blas, thresholds, allocations_);
  // Wakes every worker once, so that the record can say how many of them the system let us pin.
  for (int i = 0; i < 1000 && team_->pinned_workers() < team_->threads() - 1; ++i) {
    team_->run([](int) {});
    usleep(10);
  }
  info_.facts["pinned_workers"] = fmt::format("{} of {}", team_->pinned_workers(), team_->threads() - 1);
}

CpuDevice::~CpuDevice() {
  ops_.reset();
  team_.reset();
  for (const auto& [pointer, given] : given_) release(pointer, given);
  for (const Slab& slab : slabs_) munmap(slab.begin, kSlabBytes);
  restore_floating_point_state(floating_point_state_);
}

void* CpuDevice::allocate(size_t bytes) {
  // Linux promises more memory than there is and ends the process when it is used: so ask first.
  const int64_t available = std::min(free_memory(), available_memory());
  if (bytes > static_cast<size_t>(available)) throw_out_of_memory(bytes, available);
  ++allocations_;
  if (DLB_ADDRESS_SANITIZER) {  // which sees a touch behind a buffer only when each is a block of its own
    void* pointer = std::aligned_alloc(kAlignment, round_up(std::max<size_t>(bytes, 1), kAlignment));
    if (pointer == nullptr) throw_out_of_memory(bytes, available);
    return give(pointer, bytes, Origin::heap);
  }
  if (bytes < kLargeBytes) {
    if (void* pointer = from_slab(bytes)) return give(pointer, bytes, Origin::slab);
  } else if (void* pointer = map_huge_pages(bytes)) {
    return give(pointer, round_up(bytes, kHugePage), Origin::mapped);
  }
  throw_out_of_memory(bytes, available);
}

void* CpuDevice::give(void* pointer, size_t bytes, Origin origin) {
  given_[pointer] = {static_cast<int64_t>(bytes), origin};
  given_bytes_ += static_cast<int64_t>(bytes);
  return pointer;
}

void* CpuDevice::map_huge_pages(size_t bytes) {
  // One huge page more, so that the memory begins at one; what is left over at both ends goes back.
  const size_t size = round_up(bytes, kHugePage), with_slack = size + kHugePage;
  void* mapped = mmap(nullptr, with_slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapped), aligned = round_up(begin, kHugePage);
  if (aligned > begin) munmap(mapped, aligned - begin);
  const size_t tail = begin + with_slack - (aligned + size);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + size), tail);
  void* pointer = reinterpret_cast<void*>(aligned);
  madvise(pointer, size, MADV_HUGEPAGE);  // refused by kernels without huge pages; small ones are right too
  char* bytes_of = static_cast<char*>(pointer);
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  team_->parallel_for(static_cast<int64_t>(size), 1, static_cast<int64_t>(kHugePage), [&](int64_t from, int64_t to) {
    for (int64_t at = from; at < to; at += static_cast<int64_t>(page)) bytes_of[at] = 0;
  });
  return pointer;
}

/// Cut from the newest slab, one buffer behind the other; a slab is given back when its last buffer is.
void* CpuDevice::from_slab(size_t bytes) {
  const size_t size = round_up(std::max<size_t>(bytes, 1), kAlignment);
  if (slabs_.empty() || slabs_.back().used + size > kSlabBytes) {
    char* begin = static_cast<char*>(map_huge_pages(kSlabBytes));
    if (begin == nullptr) return nullptr;
    slabs_.push_back({begin, 0, 0});
  }
  Slab& slab = slabs_.back();
  void* pointer = slab.begin + slab.used;
  slab.used += size;
  ++slab.live;
  return pointer;
}

void CpuDevice::back_to_slab(void* pointer) {
  const auto slab = std::find_if(slabs_.begin(), slabs_.end(), [pointer](const Slab& each) {
    return std::less_equal<>()(each.begin, static_cast<char*>(pointer)) &&
           std::less<>()(static_cast<char*>(pointer), each.begin + kSlabBytes);
  });
  if (slab == slabs_.end() || --slab->live > 0) return;
  if (slab + 1 == slabs_.end()) {
    slab->used = 0;  // the next point begins where this one did
  } else {
    munmap(slab->begin, kSlabBytes);
    slabs_.erase(slab);
  }
}

void CpuDevice::deallocate(void* pointer) noexcept {
  const auto found = given_.find(pointer);
  if (found == given_.end()) return;
  given_bytes_ -= found->second.bytes;
  release(pointer, found->second);
  given_.erase(found);
}

void CpuDevice::release(void* pointer, const Given& given) {
  switch (given.origin) {
    case Origin::heap:
      return std::free(pointer);
    case Origin::mapped:
      munmap(pointer, static_cast<size_t>(given.bytes));
      return;
    case Origin::slab:
      return back_to_slab(pointer);
  }
}

// Host memory is device memory; there is no link that pinning could help.
void* CpuDevice::allocate_host(size_t bytes, HostMemory) {
  return allocate(bytes);
}
void CpuDevice::deallocate_host(void* pointer, HostMemory) noexcept {
  deallocate(pointer);
}
// What there was at the start, less what is given out: with other programs' memory it would move by itself. `allocate`
// looks at what there really is.
int64_t CpuDevice::free_memory() const {
  return std::max<int64_t>(0, memory_at_start_ - given_bytes_);
}

void CpuDevice::copy_to_device(void* device, const void* host, size_t bytes) {
  ops_->copy_bytes(host, device, static_cast<int64_t>(bytes));
}
void CpuDevice::copy_to_host(void* host, const void* device, size_t bytes) {
  ops_->copy_bytes(device, host, static_cast<int64_t>(bytes));
}
void CpuDevice::copy_on_device(void* to, const void* from, size_t bytes) {
  ops_->copy_bytes(from, to, static_cast<int64_t>(bytes));
}

void CpuDevice::set_bytes(void* device, uint8_t value, size_t bytes) {
  team_->parallel_for(static_cast<int64_t>(bytes), int64_t{1} << 18, 64, [&](int64_t begin, int64_t end) {
    std::memset(static_cast<char*>(device) + begin, value, static_cast<size_t>(end - begin));
  });
}

Support CpuDevice::supports_graphs() const {
  return {SupportLevel::no, "a CPU has no launch that a recorded graph could save"};
}

std::unique_ptr<Graph> CpuDevice::capture(const std::function<void(Ops&)>&) {
  return nullptr;
}

Telemetry CpuDevice::telemetry() {
  Telemetry t;
  // The package's energy counter (powercap); readable by root only since Linux 5.10, absent in most virtual machines.
  std::ifstream in("/sys/class/powercap/intel-rapl:0/energy_uj");
  double microjoules = 0;
  if (in >> microjoules) t.energy_joules = microjoules * 1e-6;
  return t;
}

}  // namespace dlbench::cpu
