//===- Npy.cpp - NumPy's array files --------------------------------------===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tessera/Runtime/CommandLine/Npy.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace tessera::runtime {

namespace {

struct Code {
  std::string_view text; ///< NumPy's code without the byte order
  DType dtype;
};
/// The first of each dtype is used for writing.
constexpr std::array<Code, 10> kCodes = {{{"f8", DType::f64},
                                          {"f4", DType::f32},
                                          {"f2", DType::f16},
                                          {"u2", DType::bf16},
                                          {"i8", DType::i64},
                                          {"i4", DType::i32},
                                          {"i2", DType::i16},
                                          {"i1", DType::i8},
                                          {"b1", DType::i1},
                                          {"i8", DType::index}}};

/// The header is the text of a Python dictionary with three known keys:
///   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
public:
  explicit HeaderParser(std::string_view text) : text(text) {}

  std::string descr;
  bool fortranOrder = false;
  Shape shape;

  bool parse() {
    bool hasDescr = false, hasOrder = false, hasShape = false;
    if (!take('{'))
      return false;
    while (!take('}')) {
      std::string key;
      if (!quoted(key) || !take(':'))
        return false;
      bool ok = false;
      if (key == "descr")
        ok = hasDescr = quoted(descr);
      else if (key == "fortran_order")
        ok = hasOrder = boolean();
      else if (key == "shape")
        ok = hasShape = tuple();
      if (!ok)
        return false;
      take(',');
    }
    return hasDescr && hasOrder && hasShape;
  }

private:
  void skipSpace() {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])))
      ++at;
  }
  bool take(char c) {
    skipSpace();
    if (at == text.size() || text[at] != c)
      return false;
    ++at;
    return true;
  }
  bool quoted(std::string &result) {
    skipSpace();
    if (at == text.size() || (text[at] != '\'' && text[at] != '"'))
      return false;
    size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos)
      return false;
    result = text.substr(at + 1, end - at - 1);
    at = end + 1;
    return true;
  }
  bool boolean() {
    skipSpace();
    for (bool value : {true, false}) {
      std::string_view word = value ? "True" : "False";
      if (text.substr(at, word.size()) == word) {
        at += word.size();
        fortranOrder = value;
        return true;
      }
    }
    return false;
  }
  bool tuple() {
    if (!take('('))
      return false;
    while (!take(')')) {
      skipSpace();
      size_t begin = at;
      int64_t extent = 0;
      for (; at < text.size() && std::isdigit(static_cast<unsigned char>(text[at])); ++at) {
        if (extent > (int64_t(1) << 50))
          return false;
        extent = extent * 10 + (text[at] - '0');
      }
      if (at == begin || shape.size() == 64)
        return false;
      shape.push_back(extent);
      take(',');
    }
    return true;
  }

  std::string_view text;
  size_t at = 0;
};

/// Fortran order is the row-major order of the transposed tensor.
void transposeFromFortran(HostTensor &tensor) {
  int64_t size = sizeOf(tensor.dtype), count = tensor.numElements();
  Bytes result(tensor.data.size());
  Shape index(tensor.shape.size());
  Shape strides(tensor.shape.size());
  int64_t stride = 1;
  for (size_t d = 0; d < strides.size(); stride *= tensor.shape[d++])
    strides[d] = stride;
  for (int64_t i = 0; i < count; ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < index.size(); ++d)
      from += index[d] * strides[d];
    std::memcpy(result.data() + i * size, tensor.data.data() + from * size,
                static_cast<size_t>(size));
    for (size_t d = index.size(); d-- > 0 && ++index[d] == tensor.shape[d];)
      index[d] = 0;
  }
  tensor.data = std::move(result);
}

struct Prefix {
  size_t headerAt, headerSize;
};

Status readPrefix(const std::byte *data, size_t size, Prefix &prefix) {
  static constexpr std::string_view kMagic = "\x93NUMPY";
  if (size < 10 || std::memcmp(data, kMagic.data(), kMagic.size()) != 0)
    return Status::error("not a .npy file");
  auto version = static_cast<int>(data[6]);
  if (version == 1) {
    uint16_t length;
    std::memcpy(&length, data + 8, sizeof(length));
    prefix = {10, length};
  } else if (version == 2 || version == 3) {
    uint32_t length = 0;
    if (size >= 12)
      std::memcpy(&length, data + 8, sizeof(length));
    prefix = {12, length};
  } else {
    return Status::error(".npy version " + std::to_string(version) + " is not known");
  }
  if (size < prefix.headerAt || prefix.headerSize > size - prefix.headerAt)
    return Status::error("truncated within its header");
  return {};
}

} // namespace

Expected<HostTensor> parseNpy(const std::byte *data, size_t size, const std::string &origin) {
  auto fail = [&](const std::string &message) { return Status::error(origin + ": " + message); };
  Prefix prefix{};
  TESSERA_RETURN_IF_ERROR(readPrefix(data, size, prefix).in(origin));
  HeaderParser header({reinterpret_cast<const char *>(data) + prefix.headerAt, prefix.headerSize});
  if (!header.parse())
    return fail("the header does not describe an array of numbers");
  if (header.descr.size() < 3)
    return fail("'" + header.descr + "' is not a valid element type");
  if (header.descr[0] == '>')
    return fail("big-endian '" + header.descr + "': save it little-endian");
  std::string_view code = std::string_view(header.descr).substr(1);
  auto it = std::find_if(kCodes.begin(), kCodes.end(), [&](auto &c) { return c.text == code; });
  if (it == kCodes.end())
    return fail("element type '" + header.descr +
                "' is not supported; expected float64, float32, float16, int64, int32, int16, "
                "int8, bool or uint16 (as bf16)");
  auto elements = elementCount(header.shape);
  size_t available = size - prefix.headerAt - prefix.headerSize;
  auto wanted = elements.value_or(0) <= (int64_t(1) << 58)
                    ? static_cast<size_t>(elements.value_or(0) * sizeOf(it->dtype))
                    : SIZE_MAX;
  if (!elements || wanted > available)
    return fail("truncated: " + typeText(it->dtype, header.shape) + " needs " +
                std::to_string(wanted) + " bytes, the file has " + std::to_string(available));
  if (wanted < available)
    return fail("the file has " + std::to_string(available - wanted) + " bytes beyond its " +
                typeText(it->dtype, header.shape));
  const std::byte *begin = data + prefix.headerAt + prefix.headerSize;
  HostTensor tensor{it->dtype, header.shape, Bytes(begin, begin + wanted)};
  if (tensor.dtype == DType::i1)
    for (std::byte &b : tensor.data)
      b = std::byte(b != std::byte(0));
  if (header.fortranOrder)
    transposeFromFortran(tensor);
  return tensor;
}

Expected<HostTensor> readNpy(const std::string &path) {
  auto bytes = readFile(path);
  if (!bytes)
    return bytes.status();
  return parseNpy(bytes->data(), bytes->size(), path);
}

Bytes serializeNpy(const HostTensor &tensor) {
  std::string shape;
  for (int64_t extent : tensor.shape)
    shape += std::to_string(extent) + ", ";
  auto code =
      std::find_if(kCodes.begin(), kCodes.end(), [&](auto &c) { return c.dtype == tensor.dtype; });
  std::string order = sizeOf(tensor.dtype) == 1 ? "|" : "<";
  std::string header = "{'descr': '" + order + std::string(code->text) +
                       "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // The data starts at a multiple of 64 bytes.
  while ((10 + header.size() + 1) % 64 != 0)
    header += ' ';
  header += '\n';
  Bytes file(10 + header.size() + tensor.data.size());
  auto length = static_cast<uint16_t>(header.size());
  std::memcpy(file.data(), "\x93NUMPY\x01\x00", 8);
  std::memcpy(file.data() + 8, &length, sizeof(length));
  std::memcpy(file.data() + 10, header.data(), header.size());
  std::copy(tensor.data.begin(), tensor.data.end(),
            file.begin() + static_cast<std::ptrdiff_t>(10 + header.size()));
  return file;
}

Status writeNpy(const std::string &path, const HostTensor &tensor) {
  Bytes bytes = serializeNpy(tensor);
  return writeFile(path, bytes.data(), bytes.size());
}

/// The fix in the message for an array of another shape than an argument's.
static std::string fixOf(const Shape &given, const Shape &wanted) {
  auto text = [](const Shape &shape) {
    std::string dims;
    for (int64_t extent : shape)
      dims += (dims.empty() ? "" : ", ") + std::to_string(extent);
    return "(" + dims + (shape.size() == 1 ? ",)" : ")");
  };
  if (elementCount(given).value_or(-1) == elementCount(wanted).value_or(-2))
    return "; reshape it to " + text(wanted) + " before saving it";
  return "; save an array of shape " + text(wanted) +
         ", or change the type of the argument in the program";
}

Expected<HostTensor> asArgument(HostTensor tensor, DType dtype, const Shape &shape,
                                const std::string &origin) {
  if (tensor.shape != shape)
    return Status::error(origin + ": the array is " + typeText(tensor.dtype, tensor.shape) +
                         ", expected " + typeText(dtype, shape) + fixOf(tensor.shape, shape));
  bool sameBits = tensor.dtype == dtype || (tensor.dtype == DType::i64 && dtype == DType::index) ||
                  (tensor.dtype == DType::bf16 && dtype == DType::i16);
  if (!sameBits)
    return Status::error(origin + ": the array is " + typeText(tensor.dtype, tensor.shape) +
                         ", expected " + typeText(dtype, shape) +
                         "; convert it with astype before saving it" +
                         (dtype == DType::bf16 ? " (bf16 is saved as the bits in a uint16)" : ""));
  tensor.dtype = dtype;
  return tensor;
}

} // namespace tessera::runtime
