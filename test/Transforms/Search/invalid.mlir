// Wrong options are named with what there is.
// RUN: not tessera-opt %s --dist-search=mode=quick 2>&1 | FileCheck %s --check-prefix=MODE
// RUN: not tessera-opt %s --dist-search=time-limit=0 2>&1 | FileCheck %s --check-prefix=TIME
// MODE: error: dist-search: 'quick' is no mode; modes are sharding_propagation, dynamic_programming, recursive_programming, exact
// TIME: error: dist-search: time-limit is positive

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
