// Errors of invalid options list the valid ones.
// RUN: not tessera-opt %s --dist-search=mode=quick 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not tessera-opt %s --dist-search=time-limit=0 2>&1 | FileCheck %s --check-prefix=TIME
// RUN: not tessera-opt %s --dist-search=devices=-2 2>&1 | FileCheck %s --check-prefix=DEVICES
// RUN: not tessera-opt %s --dist-search=memory-budget=nan 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: not tessera-opt %s --dist-search=memory-budget=inf 2>&1 | FileCheck %s --check-prefix=INFINITE
// MODE: error: dist-search: 'quick' is not a mode; modes are sharding_propagation, dynamic_programming, recursive_programming, exact
// TIME: error: dist-search: time-limit is 0.00; it is a positive number of seconds
// DEVICES: error: dist-search: devices is -2; it is 0, for a program with a mesh, or a number of devices
// BUDGET: error: dist-search: memory-budget is nan; it is 0, for none, or a number of GiB
// INFINITE: error: dist-search: memory-budget is INF; it is 0, for none, or a number of GiB

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
