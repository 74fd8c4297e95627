//===- Report.h - What a program communicates and why -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_DRIVER_REPORT_H
#define TESSERA_DRIVER_REPORT_H

#include "tessera/Driver/OriginRecorder.h"
#include "tessera/Sharding/Topology.h"
#include "tessera/Transforms/Pipeline/RolledPipelines.h"
#include "tessera/Transforms/Pipeline/Timeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace tessera {

/// An argument or result in the report.
struct ValueReport {
  std::string name, type, sharding, origin;
  std::vector<int64_t> localShape;
};

/// A collective in the report; design of the fields: docs/report.md.
struct CollectiveReport {
  std::string kind, mesh, dtype, loc, reason;
  std::vector<std::string> axes;
  int64_t groupSize = 1;
  sharding::Traffic traffic; ///< of one execution
  sharding::Timing timing;   ///< of one execution, modelled; of a send nothing is
  double exposedSeconds = 0; ///< of them, those for which the device waits
  bool isOverlapped = false; ///< started, and waited for later
  double readySeconds = 0;   ///< when its operands are computed; from the start of the step
  double beginSeconds = 0;   ///< when it begins
  /// What each algorithm that the machine has and that applies would take, fastest first.
  std::vector<sharding::Timing> candidates;
  /// What the backends `mpi` and `tcp` take, of each of its calls: "direct", "ring", …, "exchange".
  std::vector<std::string> processAlgorithms;
  int64_t trips = 1;
  bool bounded = true;       ///< whether the number of trips is known
  int64_t modelledTrips = 1; ///< those that times are for: four for a loop of an unknown number
};

struct Report {
  std::vector<sharding::Mesh> meshes;
  std::vector<ValueReport> arguments, results;
  std::vector<CollectiveReport> collectives;
  int64_t peakMemoryBytes = 0; ///< of the largest device
  double computeSeconds = 0;   ///< modelled, of the linalg ops of an execution
  /// Modelled, of an execution; the parts of several meshes add up, but those of a pipeline
  /// overlap.
  double stepSeconds = 0;
  /// "data over dp", "tensor over tp", "stages over first, second", …; docs/report.md has the
  /// words.
  /// Nothing where the program was read in a phase that no longer says.
  std::optional<std::vector<std::string>> parallelisms;
  std::string machine;          ///< name of the topology that times are modelled on
  double deviceMemoryBytes = 0; ///< of a device of it
  /// Modelled: no message of a collective on the meshes takes less. 0 where there is no mesh.
  double leastMessageSeconds = 0;
  bool isAnythingCut = false; ///< an argument, a result, or what a collective moves
  /// Consecutive devices that share a host: those of all links but the outermost; 0: all do.
  int64_t devicesPerHost = 0;
  /// What dist-search says of its plan (the module's `dist.search`); nothing without a search.
  std::optional<llvm::json::Object> search;
  /// Of a program with `dist.schedule`.
  std::optional<pipeline::PipelineTimeline> pipeline;
  std::vector<pipeline::RolledPipeline> rolledPipelines;

  int64_t wireBytesTotal() const;
  int64_t collectiveCountTotal() const;
  /// Modelled seconds of communication in an execution, and those that computing does not hide.
  double communicationSeconds() const;
  double exposedSeconds() const;
  llvm::json::Value toJson() const;
  void printTable(llvm::raw_ostream &os) const;
  void printPipeline(llvm::raw_ostream &os) const;
  void printRolledPipelines(llvm::raw_ostream &os) const;
  /// The algorithm of each collective and its modelled time beside those of the other candidates.
  void printCommunication(llvm::raw_ostream &os) const;
};

/// Adds the algorithms of processes, asked of the runtime, to the report of a module that was
/// lowered to steps since. Nothing is added for more than 256 devices, whose messages would take
/// seconds to list.
void addProcessAlgorithms(Report &report, mlir::ModuleOp steps);

/// Reads the report off the local view.
mlir::FailureOr<Report> makeReport(mlir::ModuleOp localView, const OriginRecorder &origins,
                                   const sharding::Topology &topology);

} // namespace tessera

#endif // TESSERA_DRIVER_REPORT_H
