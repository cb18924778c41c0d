#pragma once

namespace cnn::compare {

// Student's t distribution with any positive number of degrees of freedom, also a broken one as
// Welch's test has it. It is computed by the regularised incomplete beta function, whose continued
// fraction (DLMF 8.17.22) is evaluated as Lentz proposed; good to about 1e-12.

// P(T <= t).
double student_cdf(double t, double degrees);

// The t with P(T <= t) = probability, which must lie between 0 and 1. Throws Error if it does not.
double student_quantile(double probability, double degrees);

}  // namespace cnn::compare
