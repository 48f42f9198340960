// Stands for a vendor library that is there when a plugin is built and missing when it is opened.
extern "C" __attribute__((visibility("default"))) int dlbench_fake_vendor_function() {
  return 1;
}
