//===- NpyTest.cpp - Valid and invalid array files ------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Reference.h"

#include "tessera/Runtime/CommandLine/Npy.h"

#include <unistd.h>

using namespace tessera::runtime;

namespace {

HostTensor counting(DType dtype, const Shape &shape) {
  HostTensor tensor = HostTensor::zeros(dtype, shape);
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    writeElement(dtype, static_cast<double>(i % 50), tensor.data.data() + i * sizeOf(dtype));
  return tensor;
}

/// A file of a given version with any header text.
Bytes fileOf(const std::string &header, size_t dataBytes, int version = 1) {
  Bytes bytes;
  auto add = [&](const void *data, size_t size) {
    const auto *begin = static_cast<const std::byte *>(data);
    bytes.insert(bytes.end(), begin, begin + size);
  };
  char prefix[8] = {'\x93', 'N', 'U', 'M', 'P', 'Y', static_cast<char>(version), 0};
  add(prefix, 8);
  auto length = static_cast<uint32_t>(header.size());
  add(&length, version == 1 ? 2 : 4);
  add(header.data(), header.size());
  for (size_t i = 0; i < dataBytes; ++i)
    bytes.push_back(std::byte(i));
  return bytes;
}

Expected<HostTensor> parse(const Bytes &bytes) {
  return parseNpy(bytes.data(), bytes.size(), "f.npy");
}

} // namespace

TEST(Npy, EveryTypeRoundTrips) {
  for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64, DType::i32,
                      DType::i16, DType::i8, DType::i1, DType::index})
    for (const Shape &shape : {Shape{}, Shape{7}, Shape{2, 3, 4}, Shape{0, 5}}) {
      HostTensor tensor = counting(dtype, shape);
      Bytes bytes = serializeNpy(tensor);
      EXPECT_EQ((bytes.size() - tensor.data.size()) % 64, 0u);
      auto read = parse(bytes);
      ASSERT_TRUE(read) << read.message();
      EXPECT_EQ(read->shape, shape);
      EXPECT_EQ(read->data, tensor.data);
      auto argument = asArgument(*read, dtype, shape, "f.npy");
      EXPECT_TRUE(argument) << argument.message();
    }
}

TEST(Npy, HeadersOfOtherWriters) {
  for (int version : {1, 2, 3}) {
    auto read = parse(fileOf("{'descr':'<i2','fortran_order':False,'shape':(2,3)}", 12, version));
    ASSERT_TRUE(read) << read.message();
    EXPECT_EQ(read->dtype, DType::i16);
    EXPECT_EQ(read->shape, (Shape{2, 3}));
  }
  EXPECT_TRUE(parse(fileOf("{\"shape\": (), 'descr': '|b1', 'fortran_order': False, }  \n", 1)));
  auto booleans = parse(fileOf("{'shape': (3,), 'descr': '|b1', 'fortran_order': False}", 3));
  ASSERT_TRUE(booleans);
  EXPECT_EQ(booleans->integer(2), 1) << "2 is true";
}

TEST(Npy, FortranOrderIsTransposed) {
  auto read = parse(fileOf("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}", 6));
  ASSERT_TRUE(read) << read.message();
  // Column-major in the file: [[0, 2, 4], [1, 3, 5]].
  int64_t expected[] = {0, 2, 4, 1, 3, 5};
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(read->integer(i), expected[i]);
}

TEST(Npy, RejectsInvalidFilesWithAReason) {
  struct {
    Bytes bytes;
    const char *expected;
  } table[] = {
      {{}, "not a .npy file"},
      {Bytes(100), "not a .npy file"},
      {fileOf("{}", 0, 9), "version 9"},
      {fileOf("{}", 0), "header"},
      {fileOf("nonsense", 0), "header"},
      {fileOf("{'descr': '<f4', 'shape': (2,), 'fortran_order': Maybe}", 8), "header"},
      {fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8), "header"},
      {fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 23), "truncated"},
      {fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}", 25), "beyond"},
      {fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}", 8),
       "truncated"},
      {fileOf("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8),
       "header"},
      {fileOf("{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", 8), "big-endian"},
      {fileOf("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8), "element type"},
      {fileOf("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", 8), "not supported"},
      {fileOf("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", 8), "header"},
  };
  for (auto &row : table) {
    auto read = parse(row.bytes);
    ASSERT_FALSE(read) << row.expected;
    EXPECT_NE(read.message().find(row.expected), std::string::npos) << read.message();
    EXPECT_EQ(read.message().rfind("f.npy: ", 0), 0u) << read.message();
  }
  Bytes good = serializeNpy(counting(DType::f32, {3, 3}));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(parseNpy(good.data(), size, "f.npy")) << size;
  EXPECT_NE(readNpy("/nonexistent.npy").message().find("No such file"), std::string::npos);
}

TEST(Npy, ArgumentsAreNotConvertedSilently) {
  auto check = [](DType file, DType argument) {
    return bool(asArgument(counting(file, {2}), argument, {2}, "f.npy"));
  };
  EXPECT_TRUE(check(DType::i64, DType::index));
  EXPECT_TRUE(check(DType::bf16, DType::i16)) << "u2 as i16: the same bits";
  EXPECT_FALSE(check(DType::f64, DType::f32));
  EXPECT_FALSE(check(DType::i32, DType::f32));
  EXPECT_FALSE(check(DType::f32, DType::bf16));
  auto shape = asArgument(counting(DType::f32, {2, 3}), DType::f32, {3, 2}, "f.npy");
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.message(), "f.npy: the array is 2x3xf32, expected 3x2xf32; reshape it to (3, 2) before saving it");
}

TEST(Npy, FilesRoundTrip) {
  std::string path = testing::TempDir() + "/tessera_npy_test.npy";
  HostTensor tensor = counting(DType::f16, {3, 5});
  ASSERT_TRUE(writeNpy(path, tensor).ok());
  auto read = readNpy(path);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->data, tensor.data);
  ::unlink(path.c_str());
}
