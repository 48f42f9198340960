#include "cuda_emulation/emulator/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

namespace dlbench::cuda_emulation {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string out = status == 0 ? text : name;
  std::free(text);
  return out;
}

// The symbol at `address` (as in the file) in the tables of an ELF image (System V ABI, "Symbol Table").
std::string symbol_at(const std::vector<char>& image, uintptr_t address) {
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
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> image{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return symbol_at(image, reinterpret_cast<uintptr_t>(function) - map->l_addr);
}

}  // namespace dlbench::cuda_emulation
