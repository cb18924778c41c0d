#pragma once

namespace cnn::tests::emulated {

// Installs a fault handler: a host access to closed device memory ends the process with a message
// that names the address. Other faults end the process as before.
void name_faults();

}  // namespace cnn::tests::emulated
