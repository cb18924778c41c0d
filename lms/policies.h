#pragma once

#include "lms/policy.h"

// What the table of policies lists; each is described in the file of its name.
namespace cnn::lms {

Plan planned(const Request& request);
Plan none(const Request& request);
Plan tflms1(const Request& request);
Plan tflms2(const Request& request);

}  // namespace cnn::lms
