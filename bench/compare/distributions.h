#pragma once

namespace cnn::compare {

// Student's t distribution with any positive real number of degrees of freedom, as Welch's test
// needs. Uses the regularised incomplete beta function, whose continued fraction (DLMF 8.17.22) is
// evaluated by Lentz's method; accurate to about 1e-12.

// Returns P(T <= t).
double student_cdf(double t, double degrees);

// Returns the t with P(T <= t) = probability. Throws Error unless 0 < probability < 1.
double student_quantile(double probability, double degrees);

}  // namespace cnn::compare
