#include <gtest/gtest.h>

#include <cmath>

#include "core/base/sha256.h"
#include "core/base/units.h"

namespace dlbench {
namespace {

TEST(Units, SiPrefixes) {
  EXPECT_EQ(si(2.34e11, "FLOP/s"), "234 GFLOP/s");
  EXPECT_EQ(si(1.2e-6, "s"), "1.2 us");
  EXPECT_EQ(si(0.999, "s"), "999 ms");
  EXPECT_EQ(si(0.9996, "s"), "1 s");
  EXPECT_EQ(si(999.6, "B/s"), "1 kB/s");
  EXPECT_EQ(si(1, "s"), "1 s");
  EXPECT_EQ(si(0, "s"), "0 s");
  EXPECT_EQ(si(-1500, "s"), "-1.5 ks");
  EXPECT_EQ(si(std::nan(""), "s"), "n/a");
  EXPECT_EQ(si(INFINITY, "s"), "n/a");
}

TEST(Units, Bytes) {
  EXPECT_EQ(si_bytes(0), "0 B");
  EXPECT_EQ(si_bytes(1000), "1000 B");
  EXPECT_EQ(si_bytes(1024), "1 KiB");
  EXPECT_EQ(si_bytes(1 << 20), "1 MiB");
  EXPECT_EQ(si_bytes(1.5 * (1 << 30)), "1.5 GiB");
}

TEST(Units, SignificantDigits) {
  EXPECT_EQ(significant(12.345), "12.3");
  EXPECT_EQ(significant(1234.5), "1234");
  EXPECT_EQ(significant(0.0012345), "0.00123");
  EXPECT_EQ(significant(0), "0");
  EXPECT_EQ(significant(std::nan("")), "n/a");
}

TEST(Units, Percent) {
  EXPECT_EQ(percent(0.834), "83 %");
  EXPECT_EQ(percent(0.0123), "1.2 %");
  EXPECT_EQ(percent(1), "100 %");
  EXPECT_EQ(percent(std::nan("")), "n/a");
}

// Known answers of FIPS 180-4 (NIST, Examples with Intermediate Values), the empty message, and 55 to 65 bytes around
// the padding boundary, computed with Python's hashlib.
TEST(Sha256, KnownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(sha256(std::string(55, 'x')), "d5e285683cd4efc02d021a5c62014694958901005d6f71e89e0989fac77e4072");
  EXPECT_EQ(sha256(std::string(56, 'x')), "04c26261370ee7541549d16dee320c723e3fd14671e66a099afe0a377c16888e");
  EXPECT_EQ(sha256(std::string(63, 'x')), "75220b47218278e656f2013bb8f0c455a25eaf01e86c64924e9d48d89776d6f2");
  EXPECT_EQ(sha256(std::string(64, 'x')), "7ce100971f64e7001e8fe5a51973ecdfe1ced42befe7ee8d5fd6219506b5393c");
  EXPECT_EQ(sha256(std::string(65, 'x')), "9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9");
}

}  // namespace
}  // namespace dlbench
