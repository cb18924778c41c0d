#pragma once

namespace cnn::tests::emulated {

// From now on a host access to closed memory of a device ends the process with a message that names
// the address. Other faults end it as before.
void name_faults();

}  // namespace cnn::tests::emulated
