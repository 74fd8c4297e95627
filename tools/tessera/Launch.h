//===- Launch.h - tessera launch --------------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_TOOLS_TESSERA_LAUNCH_H
#define TESSERA_TOOLS_TESSERA_LAUNCH_H

namespace tessera {

/// Becomes `python3 -m tessera.launch` with `arguments`, which a null pointer ends. The package is
/// that of the build folder or installation that this program is in, else python3's own. Returns an
/// exit code only where there is no python3.
int launch(char **arguments);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_LAUNCH_H
