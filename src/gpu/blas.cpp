// Finding, opening and holding cuBLAS and cuBLASLt; see blas.cuh. Twin: src/cpu/blas.cpp.
#include "gpu/blas.cuh"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/error.h"
#include "gpu/check.h"

namespace dlbench::gpu {

#if defined(DLB_CUDA_EMULATION)

BlasLocation locate_blas() {
  return {true, "emulated", "emulated", ""};
}

std::unique_ptr<BlasLibrary> BlasLibrary::open(const BlasLocation&) {
  std::unique_ptr<BlasLibrary> library(new BlasLibrary);
#define DLB_CUBLAS_ROW(name) library->functions_.name = &::name;
#define DLB_CUBLASLT_ROW(name) library->functions_.name = &::name;
#include "gpu/blas_functions.def"
#undef DLB_CUBLAS_ROW
#undef DLB_CUBLASLT_ROW
  return library;
}

BlasLibrary::~BlasLibrary() = default;

#else

namespace {

// The major version that this backend was compiled for: the ABI of cuBLAS holds within it.
const std::string kCublasFile = fmt::format("libcublas.so.{}", CUBLAS_VER_MAJOR);
const std::string kCublasLtFile = fmt::format("libcublasLt.so.{}", CUBLAS_VER_MAJOR);

/// The directory of this plugin: a relocatable package brings the libraries beside it.
std::filesystem::path plugin_directory() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<const void*>(&locate_blas), &info) == 0 || info.dli_fname == nullptr) return {};
  return std::filesystem::path(info.dli_fname).parent_path();
}

/// Directories where a file can be seen without opening it, in the order in which they are tried.
std::vector<std::filesystem::path> library_directories() {
  std::vector<std::filesystem::path> directories = {plugin_directory()};
  const auto add_list = [&](const char* list) {
    if (list == nullptr) return;
    std::string rest = list;
    for (size_t end; !rest.empty(); rest = end == std::string::npos ? "" : rest.substr(end + 1)) {
      end = rest.find(':');
      const std::string one = rest.substr(0, end);
      if (!one.empty()) directories.emplace_back(one);
    }
  };
  add_list(std::getenv("LD_LIBRARY_PATH"));
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      directories.push_back(std::filesystem::path(home) / "lib64");
      directories.push_back(std::filesystem::path(home) / "lib");
    }
  }
  const std::string toolkit = fmt::format("/usr/local/cuda-{}", CUBLAS_VER_MAJOR);
  for (const std::string& home : {std::string("/usr/local/cuda"), toolkit}) {
    directories.push_back(std::filesystem::path(home) / "lib64");
    directories.push_back(std::filesystem::path(home) / "lib");
  }
  for (const char* system : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
    directories.emplace_back(system);
  }
  return directories;
}

void* resolve(void* library, const char* name, const std::string& file) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw DeviceAbsentError(
        fmt::format("{} has no function {}; it is older than the CUDA {}.{} toolkit that dlbench was "
                    "built with: install cuBLAS of that version",
                    file, name, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10));
  }
  return symbol;
}

void* open_library(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    throw DeviceAbsentError(fmt::format("{} can't be opened: {}", file, dlerror()));
  }
  return library;
}

}  // namespace

BlasLocation locate_blas() {
  BlasLocation location;
  const std::vector<std::filesystem::path> directories = library_directories();
  const auto find = [&](const std::string& file) -> std::string {
    for (const std::filesystem::path& directory : directories) {
      std::error_code ignored;
      if (!directory.empty() && std::filesystem::exists(directory / file, ignored)) return (directory / file).string();
    }
    return "";
  };
  location.cublas = find(kCublasFile);
  location.cublaslt = find(kCublasLtFile);
  // Not in a directory we know: ask the loader, which has its own list, whatever that costs.
  const auto ask_loader = [](std::string& path, const std::string& file) {
    if (!path.empty()) return;
    if (void* library = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
      path = file;
      dlclose(library);
    }
  };
  ask_loader(location.cublaslt, kCublasLtFile);
  ask_loader(location.cublas, kCublasFile);
  location.found = !location.cublas.empty() && !location.cublaslt.empty();
  if (!location.found) location.problem = location.cublas.empty() ? kCublasFile : kCublasLtFile;
  return location;
}

std::unique_ptr<BlasLibrary> BlasLibrary::open(const BlasLocation& location) {
  std::unique_ptr<BlasLibrary> library(new BlasLibrary);
  // cuBLASLt first: cuBLAS depends on it by file name, and finds the one that is already there.
  library->cublaslt_ = open_library(location.cublaslt);
  library->cublas_ = open_library(location.cublas);
#define DLB_CUBLAS_ROW(name) \
  library->functions_.name = reinterpret_cast<decltype(&::name)>(resolve(library->cublas_, #name, location.cublas));
#define DLB_CUBLASLT_ROW(name) \
  library->functions_.name = reinterpret_cast<decltype(&::name)>(resolve(library->cublaslt_, #name, location.cublaslt));
#include "gpu/blas_functions.def"
#undef DLB_CUBLAS_ROW
#undef DLB_CUBLASLT_ROW
  return library;
}

BlasLibrary::~BlasLibrary() {
  if (cublas_ != nullptr) dlclose(cublas_);
  if (cublaslt_ != nullptr) dlclose(cublaslt_);
}

#endif

Blas::Blas(const BlasFunctions& functions, cudaStream_t stream, void* workspace, size_t workspace_bytes)
    : functions_(functions), workspace_(workspace), workspace_bytes_(workspace_bytes) {
  DLB_CUBLAS(functions_.cublasLtCreate(&cublaslt_));
  try {
    DLB_CUBLAS(functions_.cublasCreate_v2(&cublas_));
    DLB_CUBLAS(functions_.cublasSetStream_v2(cublas_, stream));  // resets the workspace, so it comes first
    DLB_CUBLAS(functions_.cublasSetWorkspace_v2(cublas_, workspace_, workspace_bytes_));
    DLB_CUBLAS(functions_.cublasSetMathMode(cublas_, CUBLAS_DEFAULT_MATH));  // TF32 off
  } catch (...) {
    destroy();
    throw;
  }
}

Blas::~Blas() {
  destroy();
}

void Blas::destroy() noexcept {
  if (cublas_ != nullptr) static_cast<void>(functions_.cublasDestroy_v2(cublas_));
  if (cublaslt_ != nullptr) static_cast<void>(functions_.cublasLtDestroy(cublaslt_));
  cublas_ = nullptr;
  cublaslt_ = nullptr;
}

}  // namespace dlbench::gpu
