//===- SessionObject.h - A session of the C interface -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_SESSION_SESSIONOBJECT_H
#define TESSERA_LIB_RUNTIME_SESSION_SESSIONOBJECT_H

#include "tessera/Runtime/Session/Session.h"
#include "tessera/Runtime/tessera_rt.h"

struct tessera_session {
  std::unique_ptr<tessera::runtime::Session> session;
  std::vector<std::string> argumentHomes, resultHomes; ///< as JSON
};

#endif // TESSERA_LIB_RUNTIME_SESSION_SESSIONOBJECT_H
