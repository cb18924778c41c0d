// Stands in for the library of the NVIDIA driver. The program only looks whether there is one.
extern "C" int cuInit(unsigned /*flags*/) { return 0; }  // NOLINT(readability-identifier-naming)
