// Stands in for the NVIDIA driver's library. The program only checks whether the library exists.
extern "C" int cuInit(unsigned /*flags*/) { return 0; }  // NOLINT(readability-identifier-naming)
