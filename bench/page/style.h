#pragma once

#include <string>
#include <string_view>

namespace cnn::page {

// Returns a whole page with this body.
std::string document(std::string_view title, std::string_view body);

}  // namespace cnn::page
