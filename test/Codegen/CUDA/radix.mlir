// Long lines are sorted by 8 bits at a time: count the digits of each block, sum the counts up, move the elements.
// RUN: tessera-opt %s --tessera-check-gpu-kernels=by-digits -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 by-digits print-ptx" -o /dev/null | FileCheck %s --check-prefix=BYTES
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80" -o /dev/null | FileCheck %s --check-prefix=CHOSEN
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="by-digits drop-barrier=1" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FAULT
// FAULT: of shared memory, which thread {{.*}} with no barrier between them

// One pass. Tiles of 4,096 elements are three blocks; the sort of bytes takes fewer launches than merges.
// CHECK: bytes: sort sort sort equal
// BYTES: bytes: launches 3, workspace 6144, bytes 111288 of 90000
// BYTES-NEXT: sort: grid 3, block 256, {{.*}} reads 9000, writes 3072
// BYTES-NEXT: sort: grid 8, block 128, {{.*}} reads 3072, writes 3072
// BYTES-NEXT: sort: grid 3, block 256, {{.*}} reads 48072, writes 45000
// BYTES: vote.sync.ballot.b32
// BYTES: bar.warp.sync
// CHOSEN: bytes: launches 3,
func.func private @bytes(%a0: tensor<9000xi8>, %a1: tensor<9000xi32>, %o0: tensor<9000xi8>, %o1: tensor<9000xi32>) -> (tensor<9000xi8>, tensor<9000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<9000xi8>, tensor<9000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<9000xi8>) outs(%o0 : tensor<9000xi8>) -> tensor<9000xi8>
  %c1 = linalg.copy ins(%s#1 : tensor<9000xi32>) outs(%o1 : tensor<9000xi32>) -> tensor<9000xi32>
  return %c0, %c1 : tensor<9000xi8>, tensor<9000xi32>
}

// Four passes, of which the second and third are one function; a few tiles are merged instead.
// CHECK: floats: sort sort sort sort sort sort sort sort sort sort sort sort equal
// BYTES: floats: launches 12,
// CHOSEN: floats: launches 4,
func.func private @floats(%a0: tensor<2x9000xf32>, %a1: tensor<2x9000xi32>, %o0: tensor<2x9000xf32>, %o1: tensor<2x9000xi32>) -> (tensor<2x9000xf32>, tensor<2x9000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 1 keys = 1 descending ins(%a0, %a1 : tensor<2x9000xf32>, tensor<2x9000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<2x9000xf32>) outs(%o0 : tensor<2x9000xf32>) -> tensor<2x9000xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<2x9000xi32>) outs(%o1 : tensor<2x9000xi32>) -> tensor<2x9000xi32>
  return %c0, %c1 : tensor<2x9000xf32>, tensor<2x9000xi32>
}

// Halves are compared without a wider type. Results that nobody reads are not moved.
// CHECK: halves: sort sort sort sort sort sort equal
func.func private @halves(%a0: tensor<8192xf16>, %a1: tensor<8192xi64>, %o1: tensor<8192xi64>) -> (tensor<8192xi64>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<8192xf16>, tensor<8192xi64>)
  %c1 = linalg.copy ins(%s#1 : tensor<8192xi64>) outs(%o1 : tensor<8192xi64>) -> tensor<8192xi64>
  return %c1 : tensor<8192xi64>
}

// CHECK: doubles: sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort equal
func.func private @doubles(%a0: tensor<1x4000xf64>, %a1: tensor<1x4000xi32>, %o0: tensor<1x4000xf64>, %o1: tensor<1x4000xi32>) -> (tensor<1x4000xf64>, tensor<1x4000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 1 keys = 1 ins(%a0, %a1 : tensor<1x4000xf64>, tensor<1x4000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<1x4000xf64>) outs(%o0 : tensor<1x4000xf64>) -> tensor<1x4000xf64>
  %c1 = linalg.copy ins(%s#1 : tensor<1x4000xi32>) outs(%o1 : tensor<1x4000xi32>) -> tensor<1x4000xi32>
  return %c0, %c1 : tensor<1x4000xf64>, tensor<1x4000xi32>
}

// Two keys, the last one first; the operands are read at the indices.
// CHECK: keys: sort sort sort sort sort sort sort sort sort equal
func.func private @keys(%a0: tensor<2x4000xi16>, %a1: tensor<2x4000xi8>, %a2: tensor<2x4000xi64>, %a3: tensor<2x4000xf32>, %o0: tensor<2x4000xi16>, %o1: tensor<2x4000xi8>, %o2: tensor<2x4000xi64>, %o3: tensor<2x4000xf32>) -> (tensor<2x4000xi16>, tensor<2x4000xi8>, tensor<2x4000xi64>, tensor<2x4000xf32>) attributes {kernel.reads = 4 : i64} {
  %s:4 = ext.sort dim = 1 keys = 2 descending ins(%a0, %a1, %a2, %a3 : tensor<2x4000xi16>, tensor<2x4000xi8>, tensor<2x4000xi64>, tensor<2x4000xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<2x4000xi16>) outs(%o0 : tensor<2x4000xi16>) -> tensor<2x4000xi16>
  %c1 = linalg.copy ins(%s#1 : tensor<2x4000xi8>) outs(%o1 : tensor<2x4000xi8>) -> tensor<2x4000xi8>
  %c2 = linalg.copy ins(%s#2 : tensor<2x4000xi64>) outs(%o2 : tensor<2x4000xi64>) -> tensor<2x4000xi64>
  %c3 = linalg.copy ins(%s#3 : tensor<2x4000xf32>) outs(%o3 : tensor<2x4000xf32>) -> tensor<2x4000xf32>
  return %c0, %c1, %c2, %c3 : tensor<2x4000xi16>, tensor<2x4000xi8>, tensor<2x4000xi64>, tensor<2x4000xf32>
}

// CHECK: wide_keys: sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort sort equal
func.func private @wide_keys(%a0: tensor<2x2000xi16>, %a1: tensor<2x2000xf32>, %a2: tensor<2x2000xf64>, %a3: tensor<2x2000xf64>, %o0: tensor<2x2000xi16>, %o1: tensor<2x2000xf32>, %o2: tensor<2x2000xf64>, %o3: tensor<2x2000xf64>) -> (tensor<2x2000xi16>, tensor<2x2000xf32>, tensor<2x2000xf64>, tensor<2x2000xf64>) attributes {kernel.reads = 4 : i64} {
  %s:4 = ext.sort dim = 1 keys = 2 ins(%a0, %a1, %a2, %a3 : tensor<2x2000xi16>, tensor<2x2000xf32>, tensor<2x2000xf64>, tensor<2x2000xf64>)
  %c0 = linalg.copy ins(%s#0 : tensor<2x2000xi16>) outs(%o0 : tensor<2x2000xi16>) -> tensor<2x2000xi16>
  %c1 = linalg.copy ins(%s#1 : tensor<2x2000xf32>) outs(%o1 : tensor<2x2000xf32>) -> tensor<2x2000xf32>
  %c2 = linalg.copy ins(%s#2 : tensor<2x2000xf64>) outs(%o2 : tensor<2x2000xf64>) -> tensor<2x2000xf64>
  %c3 = linalg.copy ins(%s#3 : tensor<2x2000xf64>) outs(%o3 : tensor<2x2000xf64>) -> tensor<2x2000xf64>
  return %c0, %c1, %c2, %c3 : tensor<2x2000xi16>, tensor<2x2000xf32>, tensor<2x2000xf64>, tensor<2x2000xf64>
}

// Lines of another dimension.
// CHECK: columns: sort sort sort sort sort sort sort sort sort sort sort sort equal
func.func private @columns(%a0: tensor<4000x3xi32>, %a1: tensor<4000x3xf32>, %o0: tensor<4000x3xi32>, %o1: tensor<4000x3xf32>) -> (tensor<4000x3xi32>, tensor<4000x3xf32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<4000x3xi32>, tensor<4000x3xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<4000x3xi32>) outs(%o0 : tensor<4000x3xi32>) -> tensor<4000x3xi32>
  %c1 = linalg.copy ins(%s#1 : tensor<4000x3xf32>) outs(%o1 : tensor<4000x3xf32>) -> tensor<4000x3xf32>
  return %c0, %c1 : tensor<4000x3xi32>, tensor<4000x3xf32>
}

// CHECK: limited: sort sort sort sort sort sort equal
func.func private @limited(%a0: tensor<9000xbf16>, %a1: tensor<9000xi32>, %o0: tensor<5000xbf16>, %o1: tensor<5000xi32>) -> (tensor<5000xbf16>, tensor<5000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 limit = 5000 ins(%a0, %a1 : tensor<9000xbf16>, tensor<9000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<5000xbf16>) outs(%o0 : tensor<5000xbf16>) -> tensor<5000xbf16>
  %c1 = linalg.copy ins(%s#1 : tensor<5000xi32>) outs(%o1 : tensor<5000xi32>) -> tensor<5000xi32>
  return %c0, %c1 : tensor<5000xbf16>, tensor<5000xi32>
}

// CHECK: bits: sort sort sort equal
func.func private @bits(%a0: tensor<9000xi1>, %a1: tensor<9000xi32>, %o0: tensor<9000xi1>, %o1: tensor<9000xi32>) -> (tensor<9000xi1>, tensor<9000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 descending ins(%a0, %a1 : tensor<9000xi1>, tensor<9000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<9000xi1>) outs(%o0 : tensor<9000xi1>) -> tensor<9000xi1>
  %c1 = linalg.copy ins(%s#1 : tensor<9000xi32>) outs(%o1 : tensor<9000xi32>) -> tensor<9000xi32>
  return %c0, %c1 : tensor<9000xi1>, tensor<9000xi32>
}
