//===- Transports.h - Transports by name ------------------------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_GROUPS_TRANSPORTS_H
#define TESSERA_LIB_RUNTIME_GROUPS_TRANSPORTS_H

#include "../Ranks/TcpTransport.h"
#include "DeviceCalls.h"

#include <functional>

namespace tessera::runtime {

/// Parameters of a job of processes, or of threads.
struct JobOptions {
  LaunchedRank rank;
  MeetingPlace place;   ///< of "threads", its address is any text that ranks of the job share
  double timeout = 120; ///< seconds to wait for all ranks
};
using OpenTransport = std::function<Expected<std::unique_ptr<Transport>>(const JobOptions &)>;

/// Names are case-insensitive. Fails for duplicate names.
Status registerTransport(const std::string &name, OpenTransport open);
/// Registers the transport of a shared object (tessera_transport_entry of tessera_groups.h).
Status loadTransport(const std::string &path);
/// "tcp", "threads", and registered ones; the error for another name lists them.
Expected<std::unique_ptr<Transport>> openTransport(const std::string &name,
                                                   const JobOptions &options);
/// In the order of registration.
std::vector<std::string> transportNames();

/// Registers a backend for devices 'cuda', by the same rules.
Status registerDeviceCalls(const std::string &name, OpenDeviceCalls open);

/// The backends of a job: "tcp" (of the host alone), "nccl" (of the device alone),
/// "cpu:tcp,cuda:nccl", "cuda:nccl". Without one for the host, its transport is also tcp, for the
/// comparison of calls.
struct ChosenBackends {
  std::string transport;
  bool hasHost = true; ///< calls may use host memory
  std::string device;  ///< empty: none
  OpenDeviceCalls openDevice;
};
Expected<ChosenBackends> chooseBackends(const std::string &text);

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_GROUPS_TRANSPORTS_H
