//===- Polynomial.cpp - Sums of products of atoms -------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Polynomial.h"

#include <algorithm>
#include <cmath>

using namespace tessera::codegen;

Polynomial Polynomial::constant(double value) {
  Polynomial result;
  if (value != 0)
    result.terms[{}] = value;
  return result;
}

Polynomial Polynomial::atom(unsigned number) {
  Polynomial result;
  result.terms[{number}] = 1;
  return result;
}

Polynomial Polynomial::operator+(const Polynomial &other) const {
  Polynomial result = *this;
  for (const auto &[monomial, coefficient] : other.terms) {
    double &sum = result.terms[monomial];
    sum += coefficient;
    if (sum == 0)
      result.terms.erase(monomial);
  }
  return result;
}

Polynomial Polynomial::operator*(const Polynomial &other) const {
  Polynomial result;
  for (const auto &[left, one] : terms)
    for (const auto &[right, two] : other.terms) {
      Monomial both;
      std::merge(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
      double &sum = result.terms[both];
      sum += one * two;
      if (sum == 0)
        result.terms.erase(both);
    }
  return result;
}

std::optional<Polynomial> Polynomial::power(double exponent) const {
  if (!(exponent >= 0 && exponent <= 4) || exponent != std::floor(exponent))
    return std::nullopt;
  Polynomial result = constant(1);
  for (int i = 0; i < static_cast<int>(exponent); ++i)
    result = result * *this;
  return result;
}

std::optional<double> Polynomial::asConstant() const {
  if (terms.empty())
    return 0.0;
  if (terms.size() == 1 && terms.begin()->first.empty())
    return terms.begin()->second;
  return std::nullopt;
}

bool Polynomial::isClose(const Polynomial &other, double relative) const {
  double largest = 0;
  for (const Polynomial *each : {this, &other})
    for (const auto &[monomial, coefficient] : each->terms)
      largest = std::max(largest, std::abs(coefficient));
  auto within = [&](const Polynomial &from, const Polynomial &to) {
    return std::all_of(from.terms.begin(), from.terms.end(), [&](const auto &term) {
      auto it = to.terms.find(term.first);
      double against = it == to.terms.end() ? 0 : it->second;
      // Cancellation leaves rounding errors of the original magnitude.
      double scale = it == to.terms.end() ? largest * 0x1p-20
                                          : std::max(std::abs(term.second), std::abs(against));
      return std::abs(term.second - against) <= relative * scale;
    });
  };
  return within(*this, other) && within(other, *this);
}
