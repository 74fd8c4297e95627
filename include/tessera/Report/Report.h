//===- Report.h - Report of a program's communication -----------*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_REPORT_REPORT_H
#define TESSERA_REPORT_REPORT_H

#include "tessera/Report/OriginRecorder.h"
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
  sharding::Timing timing;   ///< of one execution, modelled; not of a send
  double exposedSeconds = 0; ///< of them, those in which the device waits
  bool isOverlapped = false; ///< started, and waited for later
  double readySeconds = 0;   ///< when its operands are computed; from the start of the step
  double beginSeconds = 0;   ///< when it begins
  /// Times of all applicable algorithms of the machine, fastest first.
  std::vector<sharding::Timing> candidates;
  /// Algorithms of the backends `mpi` and `tcp`, one per call: "direct", "ring", …, "exchange".
  std::vector<std::string> processAlgorithms;
  int64_t trips = 1;
  bool bounded = true;       ///< whether the number of trips is known
  int64_t modelledTrips = 1; ///< trips used for times: four for a loop with an unknown number
};

/// The communication, memory and modelled times of a program, per execution (docs/report.md).
struct Report {
  std::vector<sharding::Mesh> meshes;
  std::vector<ValueReport> arguments, results;
  std::vector<CollectiveReport> collectives;
  int64_t peakMemoryBytes = 0; ///< of the largest device
  double computeSeconds = 0;   ///< modelled, of the linalg ops of one execution
  /// Modelled, of one execution; parts on several meshes are added, those of a pipeline overlap.
  double stepSeconds = 0;
  /// "data over dp", "tensor over tp", "stages over first, second", …; docs/report.md defines the
  /// words. Empty if the phase of the input program no longer shows them.
  std::optional<std::vector<std::string>> parallelisms;
  std::string machine;          ///< name of the topology of the modelled times
  double deviceMemoryBytes = 0; ///< of one of its devices
  /// Modelled lower bound on the time of a message on the meshes. 0 without a mesh.
  double leastMessageSeconds = 0;
  bool isAnythingCut = false; ///< an argument, a result, or an operand of a collective
  /// Consecutive devices that share a host: those joined by all links but the outermost; 0: all.
  int64_t devicesPerHost = 0;
  /// Data of dist-search on its plan (the module's `dist.search`); empty without a search.
  std::optional<llvm::json::Object> search;
  /// Of a program with `dist.schedule`.
  std::optional<pipeline::PipelineTimeline> pipeline;
  std::vector<pipeline::RolledPipeline> rolledPipelines;

  int64_t wireBytesTotal() const;
  int64_t collectiveCountTotal() const;
  /// Modelled seconds of communication in one execution, and those that computation does not hide.
  double communicationSeconds() const;
  double exposedSeconds() const;
  llvm::json::Value toJson() const;
  void printTable(llvm::raw_ostream &os) const;
  void printPipeline(llvm::raw_ostream &os) const;
  void printRolledPipelines(llvm::raw_ostream &os) const;
  /// The algorithm of each collective and its modelled time beside those of the other candidates.
  void printCommunication(llvm::raw_ostream &os) const;
};

/// Adds the runtime's process algorithms to the report of a module that was since lowered to steps.
/// Adds nothing for more than 256 devices, since listing their messages would take seconds.
void addProcessAlgorithms(Report &report, mlir::ModuleOp steps);

/// Creates the report from the local view.
mlir::FailureOr<Report> makeReport(mlir::ModuleOp localView, const OriginRecorder &origins,
                                   const sharding::Topology &topology);

} // namespace tessera

#endif // TESSERA_REPORT_REPORT_H
