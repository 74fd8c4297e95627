//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMMANDLINE_NPY_H
#define TESSERA_RUNTIME_COMMANDLINE_NPY_H

#include "tessera/Runtime/Session/HostTensor.h"

namespace tessera::runtime {

/// Reads a .npy file, versions 1 to 3. Little-endian f8 f4 f2 i8 i4 i2 i1 u2 b1; Fortran order is
/// transposed. NumPy has no bf16: u2 is read as bf16, its bits. Booleans become i1 (0 or 1).
/// The header is checked against the size of the file before anything is allocated. Errors:
/// "FILE: truncated: …", "FILE: not a .npy file".
Expected<HostTensor> readNpy(const std::string &path);
/// The same from memory; `origin` names it in messages.
Expected<HostTensor> parseNpy(const std::byte *data, size_t size, const std::string &origin);

/// Bytes of a .npy file of version 1. bf16 is written as u2, index as i8.
Bytes serializeNpy(const HostTensor &tensor);
/// Through a temporary file and a rename.
Status writeNpy(const std::string &path, const HostTensor &tensor);

/// Converts a tensor from a file to the dtype of an argument: equal dtypes; index for i64; u2 (read
/// as bf16) for bf16 and i16. Anything else is an error with the required conversion: values are
/// never changed silently.
Expected<HostTensor> asArgument(HostTensor tensor, DType dtype, const Shape &shape,
                                const std::string &origin);

} // namespace tessera::runtime

#endif // TESSERA_RUNTIME_COMMANDLINE_NPY_H
