# Run at every build: writes OUTPUT, the source of bench/version/build_info.h, where its text has changed.
# Takes SOURCE_DIR, VERSION and OUTPUT.
execute_process(COMMAND git -C ${SOURCE_DIR} describe --always --abbrev=40 --match= --dirty
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
# A git above an unpacked source archive is not ours.
if(failed OR NOT EXISTS ${SOURCE_DIR}/.git)
  set(value "std::nullopt")
else()
  set(value "\"${commit}\"")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "bench/version/build_info.h"

namespace cnn::bench {

std::string_view build_version() { return "@VERSION@"; }

std::optional<std::string_view> build_commit() { return @value@; }

}  // namespace cnn::bench
]])
