#pragma once

#include "lms/policy.h"

// The policies in the table; the file of each name describes it.
namespace cnn::lms {

Plan planned(const Request& request);
Plan none(const Request& request);
Plan tflms1(const Request& request);
Plan tflms2(const Request& request);
Plan caffe(const Request& request);
Plan reclaim(const Request& request);
Plan vdnn_all(const Request& request);
Plan vdnn_conv(const Request& request);
Plan vdnn_dynamic(const Request& request);
Plan window(const Request& request);
Plan capuchin(const Request& request);
Plan recompute(const Request& request);
Plan dtr(const Request& request);
Plan superneurons(const Request& request);

}  // namespace cnn::lms
