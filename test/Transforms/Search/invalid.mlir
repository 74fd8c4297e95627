// Errors of invalid options list the valid ones.
// RUN: not tessera-opt %s --dist-search=mode=quick 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not tessera-opt %s --dist-search=time-limit=0 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not tessera-opt %s --dist-search=devices=-2 2>&1 | FileCheck %s --check-prefix=DEVICES
// RUN: not tessera-opt %s --dist-search=memory-budget=nan 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not tessera-opt %s --dist-search=memory-budget=inf 2>&1 | FileCheck %s --check-prefix=INFINITE
// MODE: error: dist-search: 'quick' is not a valid mode; expected one of sharding_propagation, dynamic_programming, recursive_programming, exact
// TIME: error: dist-search: time-limit 0.00 is not valid: expected a positive number of seconds
// DEVICES: error: dist-search: devices -2 is not valid: expected a number of devices, or 0 for a program with a mesh
// BUDGET: error: dist-search: memory-budget nan is not valid: expected a number of GiB, or 0 for no budget
// INFINITE: error: dist-search: memory-budget INF is not valid: expected a number of GiB, or 0 for no budget

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
