// Barriers of kernels of rows, where a team is a block: each reduction of a row has one; a walk over rows has one more per row
// if there is exactly one reduction, since the next row's partial results overwrite those of this row. Pieces that are written
// side by side have none.
// RUN: split-file %s %t
// RUN: tessera-opt %t/none.mlir --tessera-pipeline --codegen=gpu=true --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=NONE
// RUN: tessera-opt %t/one.mlir --tessera-pipeline --codegen=gpu=true --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=ONE
// RUN: tessera-opt %t/two.mlir --tessera-pipeline --codegen=gpu=true --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=TWO
// RUN: tessera-opt %t/pieces.mlir --tessera-compile-gpu-kernels="arch=compute_80 print-loops" -o /dev/null | FileCheck %s --check-prefix=PIECES
// RUN: tessera-opt %t/none.mlir --tessera-pipeline --codegen=gpu=true --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/one.mlir --tessera-pipeline --codegen=gpu=true --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/two.mlir --tessera-pipeline --codegen=gpu=true --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: tessera-opt %t/pieces.mlir --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=EQUAL
// RUN: not tessera-opt %t/one.mlir --tessera-pipeline --codegen=gpu=true --tessera-check-gpu-kernels="drop-barrier=1 orders=false" -o /dev/null 2>&1 | FileCheck %s --check-prefix=FAULT
// EQUAL: rows {{.*}}equal
// FAULT: of shared memory, which thread {{.*}}, with no barrier between them

// NONE: rows: grid 128
// NONE-LABEL: func.func @
// NONE: scf.for
// NONE-NOT: gpu.barrier
// NONE: scf.yield
// NONE-NOT: gpu.barrier
// NONE-LABEL: func.func @

// ONE: rows: grid 128
// ONE-LABEL: func.func @
// ONE: scf.for
// ONE-COUNT-2: gpu.barrier
// ONE-NOT: gpu.barrier
// ONE-LABEL: func.func @

// TWO: rows: grid 128
// TWO-LABEL: func.func @
// TWO: scf.for
// TWO-COUNT-2: gpu.barrier
// TWO-NOT: gpu.barrier
// TWO-LABEL: func.func @

// PIECES: rows: grid
// PIECES-NOT: gpu.barrier
// PIECES: return

//--- none.mlir
func.func @main(%x: tensor<2048x1024xf32>, %d: tensor<2048x1024xf32>) -> (tensor<2048x1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<2048x1024xf32>
  %zeros = arith.constant dense<0.0> : tensor<2048xf32>
  %dz = arith.mulf %d, %x : tensor<2048x1024xf32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %db = linalg.reduce { arith.addf } ins(%dz : tensor<2048x1024xf32>) outs(%zero : tensor<1024xf32>) dimensions = [0]
  return %dz, %db : tensor<2048x1024xf32>, tensor<1024xf32>
}
//--- one.mlir
func.func @main(%x: tensor<2048x1024xf32>, %d: tensor<2048x1024xf32>) -> (tensor<2048x1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<2048x1024xf32>
  %zeros = arith.constant dense<0.0> : tensor<2048xf32>
  %s0 = linalg.reduce { arith.addf } ins(%x : tensor<2048x1024xf32>) outs(%zeros : tensor<2048xf32>) dimensions = [1]
  %b0 = linalg.broadcast ins(%s0 : tensor<2048xf32>) outs(%e : tensor<2048x1024xf32>) dimensions = [1]
  %m0 = arith.mulf %x, %b0 : tensor<2048x1024xf32>
  %c0 = math.tanh %m0 : tensor<2048x1024xf32>
  %dz = arith.mulf %d, %c0 : tensor<2048x1024xf32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %db = linalg.reduce { arith.addf } ins(%dz : tensor<2048x1024xf32>) outs(%zero : tensor<1024xf32>) dimensions = [0]
  return %dz, %db : tensor<2048x1024xf32>, tensor<1024xf32>
}
//--- two.mlir
func.func @main(%x: tensor<2048x1024xf32>, %d: tensor<2048x1024xf32>) -> (tensor<2048x1024xf32>, tensor<1024xf32>) {
  %e = tensor.empty() : tensor<2048x1024xf32>
  %zeros = arith.constant dense<0.0> : tensor<2048xf32>
  %s0 = linalg.reduce { arith.addf } ins(%x : tensor<2048x1024xf32>) outs(%zeros : tensor<2048xf32>) dimensions = [1]
  %b0 = linalg.broadcast ins(%s0 : tensor<2048xf32>) outs(%e : tensor<2048x1024xf32>) dimensions = [1]
  %m0 = arith.mulf %x, %b0 : tensor<2048x1024xf32>
  %c0 = math.tanh %m0 : tensor<2048x1024xf32>
  %s1 = linalg.reduce { arith.addf } ins(%c0 : tensor<2048x1024xf32>) outs(%zeros : tensor<2048xf32>) dimensions = [1]
  %b1 = linalg.broadcast ins(%s1 : tensor<2048xf32>) outs(%e : tensor<2048x1024xf32>) dimensions = [1]
  %m1 = arith.mulf %c0, %b1 : tensor<2048x1024xf32>
  %c1 = math.tanh %m1 : tensor<2048x1024xf32>
  %dz = arith.mulf %d, %c1 : tensor<2048x1024xf32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %db = linalg.reduce { arith.addf } ins(%dz : tensor<2048x1024xf32>) outs(%zero : tensor<1024xf32>) dimensions = [0]
  return %dz, %db : tensor<2048x1024xf32>, tensor<1024xf32>
}
//--- pieces.mlir
func.func private @pieces(%a: tensor<300x64xf32>, %b: tensor<300x64xf32>, %o: tensor<300x576xf32>) -> tensor<300x576xf32>
    attributes {kernel.reads = 2 : i64} {
  %0 = tensor.insert_slice %a into %o[0, 0] [300, 64] [1, 1] : tensor<300x64xf32> into tensor<300x576xf32>
  %1 = tensor.insert_slice %b into %0[0, 64] [300, 64] [1, 1] : tensor<300x64xf32> into tensor<300x576xf32>
  return %1 : tensor<300x576xf32>
}
