// A sort is one launch that sorts tiles in shared memory, and log2 of their number that merge pairs of runs. All merges but the
// last are launches of one function.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %s --tessera-compile-gpu-kernels="arch=compute_80 print-accesses" -o /dev/null | FileCheck %s --check-prefix=BYTES
// RUN: not tessera-opt %s --tessera-check-gpu-kernels="drop-barrier=1 races=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FAULT
// FAULT: on the emulated GPU argument {{.*}}

// Several lines share a block: each has 15 threads with 7 elements. The key is read again to be written.
// CHECK: lines: sort equal
// BYTES: lines: launches 1, workspace 0, bytes 156000 of 104000
// BYTES-NEXT: sort: grid 8, block 256,
func.func private @lines(%a0: tensor<130x100xf32>, %o0: tensor<130x100xf32>) -> (tensor<130x100xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.sort dim = 1 keys = 1 ins(%a0 : tensor<130x100xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<130x100xf32>) outs(%o0 : tensor<130x100xf32>) -> tensor<130x100xf32>
  return %c0 : tensor<130x100xf32>
}

// Lines of another dimension.
// CHECK: columns: sort equal
func.func private @columns(%a0: tensor<100x130xbf16>, %a1: tensor<100x130xi32>, %o0: tensor<100x130xbf16>, %o1: tensor<100x130xi32>) -> (tensor<100x130xbf16>, tensor<100x130xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 descending ins(%a0, %a1 : tensor<100x130xbf16>, tensor<100x130xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<100x130xbf16>) outs(%o0 : tensor<100x130xbf16>) -> tensor<100x130xbf16>
  %c1 = linalg.copy ins(%s#1 : tensor<100x130xi32>) outs(%o1 : tensor<100x130xi32>) -> tensor<100x130xi32>
  return %c0, %c1 : tensor<100x130xbf16>, tensor<100x130xi32>
}

// Eight tiles of 1,792 elements: the words of all are moved three times, and the values once.
// CHECK: long: sort sort sort sort equal
// BYTES: long: launches 4, workspace 224512, bytes 952000 of 224000
// BYTES: sort: grid 8, {{.*}} reads 56000, writes 112000
// BYTES: symbol [[SORT:.*]]
// BYTES: sort: grid 8, {{.*}} reads 112000, writes 112000
// BYTES: symbol [[MERGE:.*]]
// BYTES: sort: grid 8, {{.*}} reads 112000, writes 112000
// BYTES: symbol [[MERGE]]
// BYTES: sort: grid 8, {{.*}} reads 224000, writes 112000
func.func private @long(%a0: tensor<14000xf32>, %a1: tensor<14000xi32>, %o0: tensor<14000xf32>, %o1: tensor<14000xi32>) -> (tensor<14000xf32>, tensor<14000xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 0 keys = 1 ins(%a0, %a1 : tensor<14000xf32>, tensor<14000xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<14000xf32>) outs(%o0 : tensor<14000xf32>) -> tensor<14000xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<14000xi32>) outs(%o1 : tensor<14000xi32>) -> tensor<14000xi32>
  return %c0, %c1 : tensor<14000xf32>, tensor<14000xi32>
}

// Two words: the first key, and the index with the second.
// CHECK: keys: sort sort sort equal
func.func private @keys(%a0: tensor<2x4000xi64>, %a1: tensor<2x4000xi8>, %a2: tensor<2x4000xf32>, %o0: tensor<2x4000xi64>, %o1: tensor<2x4000xi8>, %o2: tensor<2x4000xf32>) -> (tensor<2x4000xi64>, tensor<2x4000xi8>, tensor<2x4000xf32>) attributes {kernel.reads = 3 : i64} {
  %s:3 = ext.sort dim = 1 keys = 2 descending ins(%a0, %a1, %a2 : tensor<2x4000xi64>, tensor<2x4000xi8>, tensor<2x4000xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<2x4000xi64>) outs(%o0 : tensor<2x4000xi64>) -> tensor<2x4000xi64>
  %c1 = linalg.copy ins(%s#1 : tensor<2x4000xi8>) outs(%o1 : tensor<2x4000xi8>) -> tensor<2x4000xi8>
  %c2 = linalg.copy ins(%s#2 : tensor<2x4000xf32>) outs(%o2 : tensor<2x4000xf32>) -> tensor<2x4000xf32>
  return %c0, %c1, %c2 : tensor<2x4000xi64>, tensor<2x4000xi8>, tensor<2x4000xf32>
}

// The first elements of every tile are sorted again.
// CHECK: top: sort sort equal
// BYTES: top: launches 2, workspace 768, bytes 81712
func.func private @top(%a0: tensor<2x9990xf32>, %a1: tensor<2x9990xi32>, %o0: tensor<2x8xf32>, %o1: tensor<2x8xi32>) -> (tensor<2x8xf32>, tensor<2x8xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 1 keys = 1 descending limit = 8 ins(%a0, %a1 : tensor<2x9990xf32>, tensor<2x9990xi32>)
  %c0 = linalg.copy ins(%s#0 : tensor<2x8xf32>) outs(%o0 : tensor<2x8xf32>) -> tensor<2x8xf32>
  %c1 = linalg.copy ins(%s#1 : tensor<2x8xi32>) outs(%o1 : tensor<2x8xi32>) -> tensor<2x8xi32>
  return %c0, %c1 : tensor<2x8xf32>, tensor<2x8xi32>
}

// Too many for that: merged in runs of 700.
// CHECK: half: sort sort sort sort equal
func.func private @half(%a0: tensor<9000xf32>, %o0: tensor<700xf32>) -> (tensor<700xf32>) attributes {kernel.reads = 1 : i64} {
  %s:1 = ext.sort dim = 0 keys = 1 limit = 700 ins(%a0 : tensor<9000xf32>)
  %c0 = linalg.copy ins(%s#0 : tensor<700xf32>) outs(%o0 : tensor<700xf32>) -> tensor<700xf32>
  return %c0 : tensor<700xf32>
}

// Results that nobody reads have no argument.
// CHECK: argsort: sort equal
func.func private @argsort(%a0: tensor<3x50xi1>, %a1: tensor<3x50xi32>, %o0: tensor<3x50xi32>) -> (tensor<3x50xi32>) attributes {kernel.reads = 2 : i64} {
  %s:2 = ext.sort dim = 1 keys = 1 ins(%a0, %a1 : tensor<3x50xi1>, tensor<3x50xi32>)
  %c0 = linalg.copy ins(%s#1 : tensor<3x50xi32>) outs(%o0 : tensor<3x50xi32>) -> tensor<3x50xi32>
  return %c0 : tensor<3x50xi32>
}
