//===- KernelRandomTest.cpp - Random kernels, both schemes ----------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Graphs of elementwise ops, broadcasts, transposes and reductions over up to four dimensions of
// odd sizes, with several results. Plain loops are the reference of the vectorised code. For other
// seeds: --gtest_random_seed=N, or many with --gtest_shuffle --gtest_repeat=100.
//
//===----------------------------------------------------------------------===//

#include "KernelTesting.h"

#include <gtest/gtest.h>

using namespace tessera::codegen;
using namespace tessera::codegen::testing;

namespace {

/// Writes one random kernel.
class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {
    rank = 1 + pick(4);
    static const int sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17, 24, 31, 40};
    for (int d = 0; d < rank; ++d)
      extent.push_back(sizes[pick(rank > 3 ? 9 : 14)]);
    // Sometimes enough rows to split groups.
    if (rank <= 2 && pick(3) == 0)
      extent[0] = 100 + pick(300);
    element = pick(5) == 0 ? "f64" : "f32";
  }

  struct Tensor {
    std::string name;
    std::vector<int> dims;
    bool used = false;
  };

  std::string write() {
    int inputs = 1 + pick(3);
    for (int i = 0; i < inputs; ++i) {
      std::vector<int> dims = someDims(i == 0);
      tensors.push_back({"%in" + std::to_string(i), dims});
    }
    numInputs = inputs;
    int ops = 1 + pick(7);
    for (int i = 0; i < ops; ++i)
      pick(3) == 0 ? reduce() : elementwise();
    std::string arguments, results, types;
    for (int i = 0; i < inputs; ++i)
      arguments += (i ? ", " : "") + tensors[i].name + ": " + type(tensors[i].dims);
    for (size_t i = inputs; i < tensors.size(); ++i) {
      if (tensors[i].used && pick(4))
        continue;
      outputs.push_back(tensors[i]);
      arguments += ", %out" + std::to_string(outputs.size()) + ": " + type(tensors[i].dims);
      results += (results.empty() ? "" : ", ") + tensors[i].name;
      types += (types.empty() ? "" : ", ") + type(tensors[i].dims);
    }
    return "func.func @k(" + arguments + ") -> (" + types +
           ") attributes {kernel.reads = " + std::to_string(inputs) +
           " : i64} {\n  %c0 = arith.constant 0.0 : " + element +
           "\n  %low = arith.constant -1.0e30 : " + element + "\n" + body + "  return " + results +
           " : " + types + "\n}\n";
  }

  size_t volume(const Tensor &tensor) const {
    size_t product = 1;
    for (int d : tensor.dims)
      product *= extent[d];
    return product;
  }

  std::vector<Tensor> tensors, outputs;
  int numInputs = 0;
  std::string element;

private:
  int pick(int n) { return int(random() % unsigned(n)); }

  std::vector<int> someDims(bool all) {
    std::vector<int> dims;
    for (int d = 0; d < rank; ++d)
      if (all || pick(2))
        dims.push_back(d);
    if (pick(3) == 0)
      std::shuffle(dims.begin(), dims.end(), random);
    return dims;
  }
  std::string type(const std::vector<int> &dims) const {
    std::string text = "tensor<";
    for (int d : dims)
      text += std::to_string(extent[d]) + "x";
    return text + element + ">";
  }
  std::string map(const std::vector<int> &dims) const {
    std::string from, to;
    for (int d = 0; d < rank; ++d)
      from += (d ? ", d" : "d") + std::to_string(d);
    for (size_t i = 0; i < dims.size(); ++i)
      to += (i ? ", d" : "d") + std::to_string(dims[i]);
    return "affine_map<(" + from + ") -> (" + to + ")>";
  }
  Tensor &any() {
    Tensor &tensor =
        tensors[pick(3) ? tensors.size() - 1 - pick(int(std::min<size_t>(3, tensors.size())))
                        : pick(int(tensors.size()))];
    tensor.used = true;
    return tensor;
  }
  std::string fresh() { return "%t" + std::to_string(next++); }

  /// Omits dimensions that neither the inputs nor the output index; the others are iterated in the
  /// kernel's order.
  std::string generic(std::vector<Tensor> operands, const std::vector<int> &out, bool reduce,
                      const std::string &init, const std::string &code) {
    std::vector<bool> used(rank, false);
    for (const Tensor &tensor : operands)
      for (int d : tensor.dims)
        used[d] = true;
    for (int d : out)
      used[d] = true;
    std::vector<int> renamed(rank, -1);
    int count = 0;
    std::string kinds;
    for (int d = 0; d < rank; ++d)
      if (used[d]) {
        renamed[d] = count++;
        bool parallel = std::find(out.begin(), out.end(), d) != out.end();
        kinds += (kinds.empty() ? "\"" : ", \"") +
                 std::string(parallel ? "parallel" : "reduction") + "\"";
      }
    auto localMap = [&](const std::vector<int> &dims) {
      std::string from, to;
      for (int d = 0; d < count; ++d)
        from += (d ? ", d" : "d") + std::to_string(d);
      for (size_t i = 0; i < dims.size(); ++i)
        to += (i ? ", d" : "d") + std::to_string(renamed[dims[i]]);
      return "affine_map<(" + from + ") -> (" + to + ")>";
    };
    std::string maps, ins, inTypes, args, result = fresh();
    for (size_t i = 0; i < operands.size(); ++i) {
      maps += localMap(operands[i].dims) + ", ";
      ins += (i ? ", " : "") + operands[i].name;
      inTypes += (i ? ", " : "") + type(operands[i].dims);
      args += "%a" + std::to_string(i) + ": " + element + ", ";
    }
    body += "  " + result + " = linalg.generic {indexing_maps = [" + maps + localMap(out) +
            "], iterator_types = [" + kinds + "]} ins(" + ins + " : " + inTypes + ") outs(" + init +
            " : " + type(out) + ") {\n  ^bb0(" + args + "%o: " + element + "):\n" + code +
            "  } -> " + type(out) + "\n";
    (void)reduce;
    return result;
  }

  void elementwise() {
    std::vector<Tensor> operands;
    std::vector<int> out;
    int count = 1 + pick(3);
    for (int i = 0; i < count; ++i) {
      operands.push_back(any());
      for (int d : operands.back().dims)
        if (std::find(out.begin(), out.end(), d) == out.end())
          out.push_back(d);
    }
    std::sort(out.begin(), out.end());
    if (pick(4) == 0)
      std::shuffle(out.begin(), out.end(), random);
    std::string e = element, code, last = "%a0";
    int step = 0;
    auto add = [&](const std::string &text) {
      std::string name = "%b" + std::to_string(step++);
      code += "    " + name + " = " + text + "\n";
      last = name;
    };
    for (int i = 1; i < count; ++i) {
      static const char *ops[] = {"arith.addf", "arith.mulf", "arith.subf", "arith.maximumf"};
      add(std::string(ops[pick(4)]) + " " + last + ", %a" + std::to_string(i) + " : " + e);
    }
    switch (pick(5)) {
    case 0:
      add("math.tanh " + last + " : " + e);
      break;
    case 1: {
      add("math.absf " + last + " : " + e);
      add("math.sqrt " + last + " : " + e);
      break;
    }
    case 2: {
      std::string before = last;
      add("arith.cmpf ogt, " + last + ", %c0 : " + e);
      add("arith.select " + last + ", " + before + ", %c0 : " + e);
      break;
    }
    case 3: {
      if (out.empty())
        break;
      std::string before = last;
      add("linalg.index 0 : index");
      add("arith.index_cast " + last + " : index to i32");
      add("arith.sitofp " + last + " : i32 to " + e);
      add("math.atan " + last + " : " + e);
      add("arith.addf " + before + ", " + last + " : " + e);
      break;
    }
    default:
      add("arith.mulf " + last + ", " + last + " : " + e);
      add("arith.negf " + last + " : " + e);
    }
    code += "    linalg.yield " + last + " : " + e + "\n";
    std::string init = fresh();
    body += "  " + init + " = tensor.empty() : " + type(out) + "\n";
    tensors.push_back({generic(operands, out, false, init, code), out});
  }

  void reduce() {
    Tensor source = any();
    std::vector<int> out;
    for (int d : source.dims)
      if (pick(2))
        out.push_back(d);
    std::vector<Tensor> operands{source};
    std::string e = element, value = "%a0", code;
    // A contraction if another tensor has a dimension to sum over.
    if (pick(2)) {
      operands.push_back(any());
      for (int d : operands.back().dims)
        if (pick(2) && std::find(out.begin(), out.end(), d) == out.end())
          out.push_back(d);
      code += "    %p = arith.mulf %a0, %a1 : " + e + "\n";
      value = "%p";
    }
    if (pick(3) == 0)
      std::shuffle(out.begin(), out.end(), random);
    bool maximum = pick(3) == 0;
    code += std::string("    %s = ") + (maximum ? "arith.maximumf " : "arith.addf ") + value +
            ", %o : " + e + "\n    linalg.yield %s : " + e + "\n";
    std::string empty = fresh(), init = fresh();
    body += "  " + empty + " = tensor.empty() : " + type(out) + "\n  " + init +
            " = linalg.fill ins(" + (maximum ? "%low" : "%c0") + " : " + e + ") outs(" + empty +
            " : " + type(out) + ") -> " + type(out) + "\n";
    tensors.push_back({generic(operands, out, true, init, code), out});
    // Keep magnitudes close to one.
    std::vector<Tensor> last{tensors.back()};
    tensors.back().used = true;
    std::string scale = fresh();
    body += "  " + scale + " = tensor.empty() : " + type(out) + "\n";
    std::string name =
        generic(last, out, false, scale,
                "    %h = arith.constant 0.125 : " + e + "\n    %m = arith.mulf %a0, %h : " + e +
                    "\n    linalg.yield %m : " + e + "\n");
    tensors.push_back({name, out});
  }

  std::mt19937 random;
  int rank = 1;
  std::vector<int> extent;
  std::string body;
  int next = 0;
};

template <typename T> std::string runBoth(Generator &generator, Library &plain, Library &vectors) {
  std::vector<Buffer<T>> inputs, expected, actual;
  for (int i = 0; i < generator.numInputs; ++i)
    inputs.push_back(randomBuffer<T>(generator.volume(generator.tensors[i]), 7 + i));
  std::vector<void *> first, second;
  for (Buffer<T> &buffer : inputs) {
    first.push_back(buffer.data());
    second.push_back(buffer.data());
  }
  for (const Generator::Tensor &tensor : generator.outputs) {
    expected.emplace_back(generator.volume(tensor), T(3));
    actual.emplace_back(generator.volume(tensor), T(4));
    first.push_back(expected.back().data());
    second.push_back(actual.back().data());
  }
  plain.run("k", first);
  vectors.run("k", second, true);
  for (size_t i = 0; i < expected.size(); ++i) {
    std::vector<double> reference(expected[i].begin(), expected[i].end());
    std::string difference = compare<T>(
        actual[i], reference, sizeof(T) == 8 ? 1e-10 : 2e-4, [](T v) { return double(v); }, 0.1);
    if (!difference.empty())
      return "result " + std::to_string(i) + ", " + difference;
  }
  return "";
}

TEST(KernelRandom, VectorisedEqualsPlain) {
  constexpr unsigned count = 60;
  unsigned first = 1 + count * unsigned(::testing::UnitTest::GetInstance()->random_seed());
  unsigned vectorised = 0;
  for (unsigned seed = first; seed < first + count; ++seed) {
    Generator generator(seed);
    std::string text = generator.write();
    Library a(text, plain()), b(text, best());
    ASSERT_TRUE(a.valid()) << "seed " << seed << "\n" << a.error() << text;
    ASSERT_TRUE(b.valid()) << "seed " << seed << "\n" << b.error() << text;
    vectorised += b.info("k").scheme == KernelScheme::Vectorised;
    if (b.info("k").scheme != KernelScheme::Vectorised)
      printf("seed %u: %s\n%s", seed, b.info("k").reason.c_str(), text.c_str());
    std::string difference = generator.element == "f64" ? runBoth<double>(generator, a, b)
                                                        : runBoth<float>(generator, a, b);
    EXPECT_EQ(difference, "") << "seed " << seed << "\n" << text;
  }
  EXPECT_EQ(vectorised, count);
}

} // namespace
