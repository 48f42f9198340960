// Attention (causal and not, odd lengths and head sizes) and embedding (repeated tokens, positions, tied weights).
#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

class AttentionParity : public TrainingParity {
 protected:
  static std::string describe(const AttentionSpec& s) {
    return fmt::format("B={} T={} NH={} HD={}{}", s.batch, s.length, s.heads, s.head_dim, s.causal ? " causal" : "");
  }
  static int64_t values(const AttentionSpec& s) { return s.batch * s.length * s.heads * s.head_dim; }
  static int64_t rows(const AttentionSpec& s) { return s.batch * s.heads * s.length; }
  static CaseBuffer attention_workspace(const AttentionSpec& s, bool backward) {
    return workspace_for([&](const Ops& ops) { return ops.attention_workspace_bytes(s, backward); });
  }
  /// Sums of head_dim products, then of length ones.
  static int64_t terms(const AttentionSpec& s) { return s.head_dim + s.length; }

  static OpCase forward_case(const AttentionSpec& s) {
    constexpr Op op = Op::attention_forward;
    const CaseBuffer space = attention_workspace(s, false);
    const bool work = space.elements > 0;
    return {name(op, describe(s)),
            {input("qkv", type(), 3 * values(s)), output("y", type(), values(s), tolerance(op, terms(s))),
             output("log_sum_exp", statistics_type(), rows(s), tolerance(op, terms(s), 1)), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.attention_forward(s, p[0], p[1], p[2], or_null(work, p[3]));
            }};
  }
  static std::vector<double> widened(const HostTensor& tensor) {
    std::vector<double> result;
    for (int64_t i = 0; i < tensor.size(); ++i) result.push_back(tensor.at(i));
    return result;
  }
  static OpCase backward_case(const AttentionSpec& s) {
    constexpr Op op = Op::attention_backward;
    const CaseBuffer qkv = input("qkv", type(), 3 * values(s));
    const HostTensor packed = initial_values(qkv);
    HostTensor y({values(s)}, type()), log_sum_exp({rows(s)}, statistics_type());
    oracle().ops().attention_forward(s, packed.data(), y.data(), log_sum_exp.data(), nullptr);
    const CaseBuffer space = attention_workspace(s, true);
    const bool work = space.elements > 0;
    return {name(op, describe(s)),
            {qkv, input_values("y", type(), widened(y)), input("dy", type(), values(s)),
             input_values("log_sum_exp", statistics_type(), widened(log_sum_exp)),
             output("dqkv", type(), 3 * values(s), tolerance(op, terms(s), 1)), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.attention_backward(s, p[0], p[1], p[2], p[3], p[4], or_null(work, p[5]));
            }};
  }
  static void check_attention(AttentionSpec s) {
    s.precision = precision();
    for (const bool causal : {true, false}) {
      s.causal = causal;
      check(Op::attention_forward, forward_case(s));
      check(Op::attention_backward, backward_case(s));
    }
  }
};

TEST_P(AttentionParity, Shapes) {
  check_attention({.batch = 2, .length = 7, .heads = 3, .head_dim = 5});
  check_attention({.batch = 1, .length = 33, .heads = 2, .head_dim = 32});
  check_attention({.batch = 2, .length = 65, .heads = 1, .head_dim = 16});
  check_attention({.batch = 3, .length = 16, .heads = 4, .head_dim = 8});
  check_attention({.batch = 1, .length = 130, .heads = 2, .head_dim = 64});
  check_attention({.batch = 1, .length = 10, .heads = 2, .head_dim = 96});
  check_attention({.batch = 1, .length = 9, .heads = 1, .head_dim = 131});
}

TEST_P(AttentionParity, OnesAndEmptyExtents) {
  check_attention({.batch = 1, .length = 1, .heads = 1, .head_dim = 1});
  check_attention({.batch = 4, .length = 1, .heads = 3, .head_dim = 8});
  check_attention({.batch = 1, .length = 2, .heads = 1, .head_dim = 1});
  check_attention({.batch = 0, .length = 5, .heads = 2, .head_dim = 8});
  check_attention({.batch = 2, .length = 0, .heads = 2, .head_dim = 8});
  check_attention({.batch = 2, .length = 5, .heads = 0, .head_dim = 8});
}

/// Scores of the size of a trained model's: one key takes almost everything, and e^score overflows without its maximum.
TEST_P(AttentionParity, LargeScores) {
  AttentionSpec s{.precision = precision(), .batch = 1, .length = 12, .heads = 2, .head_dim = 4};
  for (const bool causal : {true, false}) {
    s.causal = causal;
    OpCase op_case = forward_case(s);
    CaseBuffer& qkv = op_case.buffers[0];
    qkv.start = Start::values;
    // Powers of two, so that the scores are exact in every precision; up to 2*16*16 = 512 each.
    for (int64_t i = 0; i < qkv.elements; ++i)
      qkv.values.push_back(std::ldexp(i * 37 % 5 % 2 ? 1 : -1, static_cast<int>(i * 11 % 5)));
    op_case.name += " large scores";
    check(Op::attention_forward, op_case);
  }
}

TEST_P(AttentionParity, ContradictionsAreRefused) {
  if (!supported(Op::attention_forward)) return;
  for (AttentionSpec s : {AttentionSpec{.batch = 1, .length = 4, .heads = 2, .head_dim = 0},
                          AttentionSpec{.batch = 1, .length = -4, .heads = 2, .head_dim = 8}}) {
    s.precision = precision();
    expect_refused(Op::attention_forward, describe(s),
                   [&](Ops& ops, void* p) { ops.attention_forward(s, p, p, p, p); });
    expect_refused(Op::attention_backward, describe(s),
                   [&](Ops& ops, void* p) { ops.attention_backward(s, p, p, p, p, p, p); });
  }
}

DLB_EVERY_PRECISION(AttentionParity);

class EmbeddingParity : public TrainingParity {
 protected:
  static std::string describe(const EmbeddingSpec& s) {
    return fmt::format("tokens={} T={} V={} C={}{}{}", s.tokens, s.length, s.vocabulary, s.channels,
                       s.positions ? " positions" : "", s.accumulate ? " accumulate" : "");
  }
  static CaseBuffer tokens(const EmbeddingSpec& s) {
    std::vector<double> ids;
    for (int64_t t = 0; t < s.tokens; ++t) {
      // Every third token is the same one, as frequent words are; the last row of the table comes as well.
      ids.push_back(t == 0       ? static_cast<double>(s.vocabulary - 1)
                    : t % 3 == 0 ? 0.0
                                 : static_cast<double>(uniform_index(3, 0, static_cast<uint64_t>(t),
                                                                     static_cast<uint32_t>(s.vocabulary))));
    }
    return input_values("tokens", DType::i32, ids);
  }
  static OpCase forward_case(const EmbeddingSpec& s) {
    return {name(Op::embedding_forward, describe(s)),
            {tokens(s), input("token_table", type(), s.vocabulary * s.channels),
             input("position_table", type(), s.positions ? (s.length + 2) * s.channels : 0),
             output("y", type(), s.tokens * s.channels, tolerance(Op::embedding_forward, 1))},
            [s](Ops& ops, const std::vector<void*>& p) {
              ops.embedding_forward(s, static_cast<const int32_t*>(p[0]), p[1], or_null(s.positions, p[2]), p[3]);
            }};
  }
  static OpCase backward_case(const EmbeddingSpec& s) {
    constexpr Op op = Op::embedding_backward;
    const OutputTolerance dtoken = tolerance(op, s.tokens / 3 + 1, 1);
    const OutputTolerance dposition = tolerance(op, s.tokens / s.length + 1, 1);
    const CaseBuffer space = workspace_for([&](const Ops& ops) { return ops.embedding_workspace_bytes(s); });
    const bool work = space.elements > 0;
    const int64_t table = s.vocabulary * s.channels;
    return {name(op, describe(s)),
            {tokens(s), input("dy", type(), s.tokens * s.channels),
             s.accumulate ? in_place("dtoken", type(), table, dtoken) : output("dtoken", type(), table, dtoken),
             // Longer than T by two rows, which must stay as they are.
             output("dposition", type(), s.positions ? (s.length + 2) * s.channels : 0, dposition), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.embedding_backward(s, static_cast<const int32_t*>(p[0]), p[1], p[2], or_null(s.positions, p[3]),
                                     or_null(work, p[4]));
            }};
  }
  static void check_embedding(EmbeddingSpec s) {
    s.precision = precision();
    for (const bool positions : {false, true}) {
      s.positions = positions;
      check(Op::embedding_forward, forward_case(s));
      for (const bool accumulate : {false, true}) {
        EmbeddingSpec backward = s;
        backward.accumulate = accumulate;
        check(Op::embedding_backward, backward_case(backward));
      }
    }
  }
};

TEST_P(EmbeddingParity, Shapes) {
  check_embedding({.tokens = 21, .length = 7, .vocabulary = 11, .channels = 5});
  check_embedding({.tokens = 64, .length = 16, .vocabulary = 300, .channels = 33});
  check_embedding({.tokens = 130, .length = 65, .vocabulary = 17, .channels = 128});
  check_embedding({.tokens = 1030, .length = 103, .vocabulary = 70, .channels = 3});
}

TEST_P(EmbeddingParity, OnesAndEmptyExtents) {
  check_embedding({.tokens = 1, .length = 1, .vocabulary = 1, .channels = 1});
  check_embedding({.tokens = 9, .length = 9, .vocabulary = 1, .channels = 4});
  check_embedding({.tokens = 9, .length = 1, .vocabulary = 4, .channels = 1});
  check_embedding({.tokens = 0, .length = 4, .vocabulary = 4, .channels = 3});
  check_embedding({.tokens = 4, .length = 2, .vocabulary = 4, .channels = 0});
}

TEST_P(EmbeddingParity, ContradictionsAreRefused) {
  if (!supported(Op::embedding_forward)) return;
  for (EmbeddingSpec s : {EmbeddingSpec{.tokens = 7, .length = 2, .vocabulary = 4, .channels = 4},
                          EmbeddingSpec{.tokens = 4, .length = 2, .vocabulary = 0, .channels = 4},
                          EmbeddingSpec{.tokens = 4, .length = 0, .vocabulary = 4, .channels = 4}}) {
    s.precision = precision();
    const auto ids = [](void* p) { return static_cast<const int32_t*>(p); };
    expect_refused(Op::embedding_forward, describe(s),
                   [&](Ops& ops, void* p) { ops.embedding_forward(s, ids(p), p, p, p); });
    expect_refused(Op::embedding_backward, describe(s),
                   [&](Ops& ops, void* p) { ops.embedding_backward(s, ids(p), p, p, p, p); });
  }
}

DLB_EVERY_PRECISION(EmbeddingParity);

}  // namespace
}  // namespace dlbench::test
