// The sentence of an error, to be compared whole: messages are part of the product.
#pragma once

#include <gmock/gmock.h>

#include <string>

namespace dlbench::test {

/// What `action` throws as an E; "nothing was thrown" when it doesn't.
template <typename E, typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace dlbench::test
