//===- Polynomial.h - Sums of products of atoms -----------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_CODEGEN_POLYNOMIAL_H
#define TESSERA_LIB_CODEGEN_POLYNOMIAL_H

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace tessera::codegen {

/// A polynomial with real coefficients in atoms, in normal form: (x + 1) x and x x + x are equal.
class Polynomial {
public:
  static Polynomial constant(double value);
  static Polynomial atom(unsigned number);

  Polynomial operator+(const Polynomial &other) const;
  Polynomial operator*(const Polynomial &other) const;
  /// Whole powers from 0 to 4; none for others.
  std::optional<Polynomial> power(double exponent) const;

  /// Its constant value; none if it has atoms.
  std::optional<double> asConstant() const;
  /// Whether all coefficients agree to `relative` of the larger one, or of the largest of all.
  bool isClose(const Polynomial &other, double relative) const;
  bool operator==(const Polynomial &other) const { return terms == other.terms; }
  /// Whether it is small enough to continue: nested products grow fast.
  bool isSmall() const { return terms.size() <= 64; }

private:
  using Monomial = std::vector<unsigned>; ///< atoms, ascending, each as often as its power
  std::map<Monomial, double> terms;       ///< none is zero
};

} // namespace tessera::codegen

#endif // TESSERA_LIB_CODEGEN_POLYNOMIAL_H
