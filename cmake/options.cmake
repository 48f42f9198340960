# Warnings, sanitizers and run paths that every target of dlbench shares, as one interface target.
add_library(dlbench_options INTERFACE)
target_compile_features(dlbench_options INTERFACE cxx_std_20)
target_compile_options(dlbench_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Werror=switch;-Werror=return-type>
  # g++ 12 warns falsely about operator+ of a literal and a string (GCC bug 105651).
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)
if(DLBENCH_WERROR)
  target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
# Results must not depend on contraction chosen by the compiler: fused multiply-adds are written where they are meant.
target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
# No code here reads floating-point exception flags. g++ may then turn comparisons in a loop into selects and vectorise it
# (src/core/math); no value changes.
target_compile_options(dlbench_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-trapping-math>)
if(DLBENCH_SANITIZE)
  target_compile_options(dlbench_options INTERFACE -fsanitize=${DLBENCH_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(dlbench_options INTERFACE -fsanitize=${DLBENCH_SANITIZE})
endif()
