// A sort moves each element once for every 8 bits of the keys, or once for every doubling of sorted runs, whichever takes
// fewer bytes and launches.
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s
// CHECK: million: launches 12, workspace 17301760, bytes 88080384 of 16777216
// CHECK: keys_alone: launches 12, workspace 35651840, bytes 218103808 of 33554432
// CHECK: few: launches 8, workspace 2097664, bytes 17301504 of 2097152
func.func private @million(%a0: tensor<1048576xf32>, %a1: tensor<1048576xi32>, %o0: tensor<1048576xf32>, %o1: tensor<1048576xi32>) -> (tensor<1048576xf32>, tensor<1048576xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<1048576xf32>, tensor<1048576xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<1048576xf32>) outs(%o0 : tensor<1048576xf32>) -> tensor<1048576xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<1048576xi32>) outs(%o1 : tensor<1048576xi32>) -> tensor<1048576xi32>
  return %c0, %c1 : tensor<1048576xf32>, tensor<1048576xi32>
}
func.func private @keys_alone(%a0: tensor<4194304xf32>, %o0: tensor<4194304xf32>) -> (tensor<4194304xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.sort dim = 0 keys = 1 ins(%a0 : tensor<4194304xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<4194304xf32>) outs(%o0 : tensor<4194304xf32>) -> tensor<4194304xf32>
  return %c0 : tensor<4194304xf32>
}
func.func private @few(%a0: tensor<131072xf32>, %a1: tensor<131072xi32>, %o0: tensor<131072xf32>, %o1: tensor<131072xi32>) -> (tensor<131072xf32>, tensor<131072xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<131072xf32>, tensor<131072xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<131072xf32>) outs(%o0 : tensor<131072xf32>) -> tensor<131072xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<131072xi32>) outs(%o1 : tensor<131072xi32>) -> tensor<131072xi32>
  return %c0, %c1 : tensor<131072xf32>, tensor<131072xi32>
}
