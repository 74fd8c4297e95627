// Any worker sorts lines and selects their first elements: they are the tasks of a kernel, for any
// dimension. A single line is one task.
// RUN: tessera-opt %s --codegen-prepare --codegen-fuse --codegen-outline-kernels --split-input-file -o %t.mlir
// RUN: FileCheck %s --check-prefix=LOOPS < %t.mlir

// LOOPS-LABEL: func.func private @k0
// LOOPS: kernel.task_loop
func.func @rows(%x: tensor<16x1000xf32>) -> tensor<16x1000xf32> attributes {dist.view = "local"} {
  %y = ext.sort dim = 1 keys = 1 ins(%x : tensor<16x1000xf32>)
  return %y : tensor<16x1000xf32>
}

// -----

// LOOPS-LABEL: func.func private @k0
// LOOPS: kernel.task_loop
func.func @columns(%x: tensor<1000x16xf32>) -> tensor<8x16xf32> attributes {dist.view = "local"} {
  %y = ext.sort dim = 0 keys = 1 descending limit = 8 ins(%x : tensor<1000x16xf32>)
  return %y : tensor<8x16xf32>
}

// -----

// LOOPS-LABEL: func.func private @k0
// LOOPS-NOT: kernel.task_loop
// LOOPS: return
func.func @line(%x: tensor<1000xf32>) -> tensor<1000xf32> attributes {dist.view = "local"} {
  %y = ext.sort dim = 0 keys = 1 ins(%x : tensor<1000xf32>)
  return %y : tensor<1000xf32>
}
