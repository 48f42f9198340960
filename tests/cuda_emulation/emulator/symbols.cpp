#include "cuda_emulation/emulator/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>

namespace dlbench::cuda_emulation {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

// The bytes of a file, mapped: programs with debug information are large.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    struct stat status = {};
    if (fstat(file, &status) == 0 && status.st_size > 0) {
      const auto bytes = static_cast<size_t>(status.st_size);
      void* data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
      if (data != MAP_FAILED) bytes_ = {static_cast<const char*>(data), bytes};
    }
    close(file);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::span<const char> bytes_;
};

// The symbol at `address` (as in the file) in the tables of an ELF image (System V ABI, "Symbol Table").
std::string symbol_at(std::span<const char> image, uintptr_t address) {
  if (image.size() < sizeof(ElfW(Ehdr)) || std::memcmp(image.data(), ELFMAG, SELFMAG) != 0) return "";
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(image.data());
  if (header->e_shoff + header->e_shnum * sizeof(ElfW(Shdr)) > image.size()) return "";
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(image.data() + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)& table = sections[i];
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= header->e_shnum) continue;
    const ElfW(Shdr)& strings = sections[table.sh_link];
    if (table.sh_offset + table.sh_size > image.size() || strings.sh_offset + strings.sh_size > image.size()) return "";
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(image.data() + table.sh_offset);
    for (size_t s = 0; s < table.sh_size / sizeof(ElfW(Sym)); ++s) {
      const bool is_function = (symbols[s].st_info & 0xF) == STT_FUNC;
      if (is_function && symbols[s].st_value == address && symbols[s].st_name < strings.sh_size) {
        return demangled(image.data() + strings.sh_offset + symbols[s].st_name);
      }
    }
  }
  return "";
}

}  // namespace

std::string function_name(const void* function) {
  Dl_info info = {};
  link_map* map = nullptr;
  if (dladdr1(function, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) return "";
  const std::string path = map->l_name && *map->l_name ? map->l_name : "/proc/self/exe";
  return symbol_at(MappedFile(path).bytes(), reinterpret_cast<uintptr_t>(function) - map->l_addr);
}

}  // namespace dlbench::cuda_emulation
