// RUN: not tessera-opt %s --codegen-emit-rt 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: tessera-opt %s --codegen-emit-rt=function=b | FileCheck %s
// RUN: not tessera-opt %s --codegen-emit-rt=function=c 2>&1 | FileCheck %s --check-prefix=NONE

// A module of steps has one program.
// BOTH: error: a module of steps must be one program, this one has 2; choose with codegen-emit-rt{function=…}: a, b
// NONE: error: there is no program 'c'; choose with codegen-emit-rt{function=…}: a, b
// CHECK-NOT: rt.program @a
// CHECK: rt.program @b
// CHECK-NOT: func.func @a
dist.process_mesh @m(shape = [2], dim_names = ["x"])
func.func @a(%x: tensor<4xf32>) -> tensor<4xf32> attributes {dist.view = "local", dist.mesh = @m} {
  return %x : tensor<4xf32>
}
func.func @b(%x: tensor<4xf32>) -> tensor<4xf32> attributes {dist.view = "local", dist.mesh = @m} {
  return %x : tensor<4xf32>
}
