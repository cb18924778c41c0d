#pragma once

#include <string>
#include <string_view>

namespace cnn::page {

// A whole page around a body.
std::string document(std::string_view title, std::string_view body);

}  // namespace cnn::page
