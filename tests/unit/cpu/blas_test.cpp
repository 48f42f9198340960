// Which OpenBLAS is refused, and that the one here works.
#include "cpu/blas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace dlbench::cpu {
namespace {

using testing::HasSubstr;

TEST(RefuseBlas, SerialIsRefusedWithWhatToInstall) {
  const std::string sentence =
      refuse_blas({.parallel = 0, .config = "OpenBLAS 0.3.21", .core = "Haswell", .library = "/lib/x.so"});
  EXPECT_THAT(sentence, HasSubstr("/lib/x.so"));
  EXPECT_THAT(sentence, HasSubstr("serial"));
  EXPECT_THAT(sentence, HasSubstr("libopenblas0-pthread"));
}

TEST(RefuseBlas, ThreadedVariantsAreAccepted) {
  EXPECT_EQ(refuse_blas({.parallel = 1, .config = "", .core = "", .library = ""}), "");
  EXPECT_EQ(refuse_blas({.parallel = 2, .config = "", .core = "", .library = ""}), "");
}

TEST(RefuseBlas, UnknownAnswerIsRefused) {
  EXPECT_THAT(refuse_blas({.parallel = 7, .config = "", .core = "", .library = "y"}), HasSubstr("unknown (7)"));
}

TEST(Blas, TheOneHereMultiplies) {
  const Blas& blas = Blas::instance();
  ASSERT_EQ(blas.absence, Absence::none) << blas.sentence;
  EXPECT_THAT(blas.facts.config, HasSubstr("OpenBLAS"));
  EXPECT_FALSE(blas.facts.core.empty());
  EXPECT_THAT(blas.facts.library, HasSubstr("openblas"));
  const std::vector<double> a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  std::vector<double> c(4);
  blas.gemm(true, Transpose::no, Transpose::no, 2, 2, 2, 1.0, a.data(), 2, b.data(), 2, 0.0, c.data(), 2);
  EXPECT_EQ(c, (std::vector<double>{19, 22, 43, 50}));
}

}  // namespace
}  // namespace dlbench::cpu
