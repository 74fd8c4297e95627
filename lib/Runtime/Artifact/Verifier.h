//===- Verifier.h - Checks that make a program safe to execute --*- C++ -*-===//
//
// Part of Tessera, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_LIB_RUNTIME_ARTIFACT_VERIFIER_H
#define TESSERA_LIB_RUNTIME_ARTIFACT_VERIFIER_H

#include "tessera/Runtime/Artifact/Program.h"

#include <map>
#include <set>

namespace tessera::runtime {

/// Checks shared by ProgramVerify.cpp (declarations) and StepVerify.cpp (steps). Every method
/// returns the first violation, prefixed with the path of its location.
class Verifier {
public:
  Verifier(const Program &program, int64_t constantBytes)
      : program(program), constantBytes(constantBytes) {}

  Status run();

  /// `use`: whether the slot is written, which constants do not permit.
  enum class Use { read, write };
  Status checkSlot(const Part &part, int64_t slot, Use use) const;
  /// A slot of dtype `index` that the executor writes.
  Status checkIndexSlot(const Part &part, int64_t slot) const;
  Status checkMesh(int64_t mesh) const;
  /// A mesh of the same devices as the part's.
  Status checkMeshOfPart(const Part &part, int64_t mesh) const;
  Status checkAxes(const sharding::Mesh &mesh, const sharding::AxisList &axes) const;
  Status checkLayout(const sharding::Mesh &mesh, const sharding::Layout &layout, DType dtype) const;
  /// Whether a slot can hold a device's buffer of a layout.
  Status checkBuffer(const Part &part, int64_t slot, Use use, const sharding::Layout &layout,
                     DType dtype) const;

  const Program &program;
  const int64_t constantBytes;

private:
  Status checkMeshes() const;
  Status checkPart(const Part &part) const;
  Status checkSlotInterval(const Part &part, const Slot &slot) const;
  Status checkHome(const Home &home, Verifier::Use use, DType dtype) const;
  Status checkArguments() const;
  Status checkResults() const;
};

/// Checks the steps of all parts.
class StepVerifier {
public:
  explicit StepVerifier(const Verifier &base) : base(base) {}
  Status run();

private:
  Status checkList(const StepList &steps, const std::string &path);
  Status checkStep(const Step &step, const std::string &path);
  Status check(const LaunchStep &launch);
  Status checkBlocks(const LaunchStep &launch);
  Status checkJoin(const LaunchStep &launch);
  Status check(const GemmStep &gemm);
  Status check(const ContractStep &contract);
  Status check(const CollectiveStep &collective);
  Status check(const TransferStep &transfer);
  Status check(const WaitStep &wait);
  Status check(const CopyStep &copy);
  Status check(const LoopStep &loop);
  Status check(const WhileStep &loop);
  Status check(const IfStep &branch);
  Status checkBound(const Bound &bound);
  Status checkCondition(int64_t slot);
  Status checkMatrix(int64_t slot, Verifier::Use use, DType dtype, int64_t batch, int64_t rows,
                     int64_t columns, int64_t leading, int64_t stride);
  Status checkEpilogue(const GemmStep &gemm);
  Status checkOperand(const Operand &operand, int64_t sourceMesh, int64_t targetMesh);
  Status checkTransfers() const;

  struct Side {
    const TransferStep *step;
    std::string path;
  };

  const Verifier &base;
  const Part *part = nullptr;
  const Step *before = nullptr; ///< the step before this one in its list
  int64_t lastOrder = 0;
  bool anyOrder = false;
  std::set<int64_t> open;       ///< tokens started and not waited for in the current list
  std::set<int64_t> seenTokens; ///< of the part
  std::set<int64_t> collectiveIds;
  std::map<int64_t, Side> sends, recvs;
  std::string path;
};

} // namespace tessera::runtime

#endif // TESSERA_LIB_RUNTIME_ARTIFACT_VERIFIER_H
