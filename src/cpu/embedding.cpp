// Rows looked up in tables, and their gradient. Twin: src/gpu/embedding.cu.
//
// The gradient of a row is the sum over the places where its token stands, in their order: the places are sorted by
// token first (a radix sort keeps the order of equal tokens), then each row is summed by one thread.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kColumns = 512;  ///< of a table row that one task sums
constexpr int kDigitBits = 11, kDigits = 1 << kDigitBits;

char* at(void* p, int64_t byte) {
  return static_cast<char*>(p) + byte;
}
const char* at(const void* p, int64_t byte) {
  return static_cast<const char*>(p) + byte;
}

void require_tokens(const EmbeddingSpec& s, const int32_t* tokens, const char* op) {
  int32_t low = 0, high = -1;
  for (int64_t i = 0; i < s.tokens; ++i) low = std::min(low, tokens[i]), high = std::max(high, tokens[i]);
  if (low < 0 || high >= s.vocabulary) {
    throw std::invalid_argument(std::string(op) + ": token " + std::to_string(low < 0 ? low : high) +
                                "; tokens go from 0 to " + std::to_string(s.vocabulary - 1));
  }
}

/// place[i]: where in the text the i-th of the tokens in ascending order stands. Four arrays of s.tokens in `memory`.
struct SortedTokens {
  const int32_t *place, *token;
  SortedTokens(const EmbeddingSpec& s, const int32_t* tokens, int32_t* memory) {
    int32_t *from_token = memory, *from_place = memory + s.tokens, *to_token = memory + 2 * s.tokens,
            *to_place = memory + 3 * s.tokens;
    for (int64_t i = 0; i < s.tokens; ++i) from_token[i] = tokens[i], from_place[i] = static_cast<int32_t>(i);
    for (int shift = 0; shift == 0 || ((s.vocabulary - 1) >> shift) > 0; shift += kDigitBits) {
      int32_t begin[kDigits + 1] = {};
      for (int64_t i = 0; i < s.tokens; ++i) ++begin[(from_token[i] >> shift & (kDigits - 1)) + 1];
      for (int d = 0; d < kDigits; ++d) begin[d + 1] += begin[d];
      for (int64_t i = 0; i < s.tokens; ++i) {
        const int32_t to = begin[from_token[i] >> shift & (kDigits - 1)]++;
        to_token[to] = from_token[i];
        to_place[to] = from_place[i];
      }
      std::swap(from_token, to_token);
      std::swap(from_place, to_place);
    }
    token = from_token;
    place = from_place;
  }
};

}  // namespace

void CpuOps::embedding_forward(const EmbeddingSpec& s, const int32_t* tokens, const void* token_table,
                               const void* position_table, void* y) {
  require_valid(s);
  const VectorKernels& k = kernels(Op::embedding_forward, s.precision);
  require_tokens(s, tokens, "embedding_forward");
  const int64_t row = s.channels * static_cast<int64_t>(size_of(storage_of(s.precision)));
  team_.parallel_for(s.tokens, grain(3 * row), 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const char* from = at(token_table, tokens[t] * row);
      if (s.positions)
        k.bias(from, at(position_table, t % s.length * row), at(y, t * row), 1, s.channels, s.channels);
      else
        isa_.copy(from, at(y, t * row), row, false);
    }
  });
}

int64_t CpuOps::embedding_workspace_bytes(const EmbeddingSpec& spec) const {
  return 4 * spec.tokens * static_cast<int64_t>(sizeof(int32_t));
}

void CpuOps::embedding_backward(const EmbeddingSpec& s, const int32_t* tokens, const void* dy, void* dtoken,
                                void* dposition, void* workspace) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::embedding_backward, s.precision);
  require_tokens(s, tokens, "embedding_backward");
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = s.channels * e;
  if (!s.accumulate) {
    team_.parallel_for(s.vocabulary * row, grain(1), 64, [&](int64_t begin, int64_t end) {
      std::memset(at(dtoken, begin), 0, static_cast<size_t>(end - begin));
    });
  }
  if (s.channels == 0) return;
  const SortedTokens sorted(s, tokens, static_cast<int32_t*>(workspace));
  // A task: some of the sorted places, and some columns. It sums the runs of equal tokens that begin among its places.
  const int64_t places = std::max<int64_t>(16, (s.tokens + 255) / 256);
  const int64_t pieces = (s.tokens + places - 1) / places, blocks = (s.channels + kColumns - 1) / kColumns;
  team_.parallel_tasks(pieces * blocks, [&](int64_t task, int) {
    const int64_t column = task % blocks * kColumns, width = std::min(kColumns, s.channels - column);
    const int64_t begin = task / blocks * places, end = std::min(s.tokens, begin + places);
    for (int64_t i = begin; i < end;) {
      const int32_t token = sorted.token[i];
      int64_t next = i + 1;
      while (next < s.tokens && sorted.token[next] == token) ++next;
      if (i > begin || i == 0 || sorted.token[i - 1] != token) {
        k.gather_sum(at(dy, column * e), s.channels, sorted.place + i, next - i, width, s.accumulate,
                     at(dtoken, token * row + column * e));
      }
      i = next;
    }
  });
  if (!s.positions) return;
  const VectorKernels& store = isa_.of[element_index(storage_of(s.precision))];
  // dy seen as [texts, length * channels]: sums of columns, in the order of the texts.
  const int64_t cells = s.length * s.channels, texts = s.tokens / s.length;
  team_.parallel_for(cells, grain((texts + 1) * e), 64, [&](int64_t begin, int64_t end) {
    alignas(64) std::byte total[kColumns * static_cast<int64_t>(sizeof(double))];
    for (int64_t cell = begin; cell < end; cell += kColumns) {
      const int64_t width = std::min(kColumns, end - cell);
      store.column_sum(at(dy, cell * e), texts, cells, width, total);
      store.round(total, at(dposition, cell * e), width);
    }
  });
}

}  // namespace dlbench::cpu
