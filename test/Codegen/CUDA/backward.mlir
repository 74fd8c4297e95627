// Value and derivative of a norm, a softmax, a cross-entropy and an activation read and write each
// argument once. Sums over columns and over everything are separate launches.
// RUN: split-file %s %t
// RUN: tessera-opt %t/layernorm.mlir --dist-autodiff="function=loss wrt=x,g,h" --tessera-pipeline --codegen --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/rmsnorm.mlir --dist-autodiff="function=loss wrt=x,g" --tessera-pipeline --codegen --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/softmax.mlir --dist-autodiff="function=loss wrt=x" --tessera-pipeline --codegen --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/entropy.mlir --dist-autodiff="function=loss wrt=x" --tessera-pipeline --codegen --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s
// RUN: tessera-opt %t/gelu.mlir --dist-autodiff="function=loss wrt=x" --tessera-pipeline --codegen --tessera-compile-gpu-kernels --tessera-check-gpu-kernels -o /dev/null | FileCheck %s --check-prefix=FLAT

// CHECK: {{broadcast|sub|mul}}{{[a-z_]*}}: launches 1, workspace 0, bytes [[BYTES:[0-9]+]] of [[BYTES]]
// CHECK-NEXT: rows
// CHECK: equal
// FLAT: {{broadcast|sub|mul}}{{[a-z_]*}}: launches 1, workspace 0, bytes [[BYTES:[0-9]+]] of [[BYTES]]
// FLAT-NEXT: pointwise
// FLAT: equal

//--- layernorm.mlir
func.func private @loss(%x: tensor<128x512xf32> {dist.name = "x"}, %g: tensor<512xf32> {dist.name = "g"}, %h: tensor<512xf32> {dist.name = "h"}, %c: tensor<128x512xf32> {dist.name = "c"}) -> tensor<f32> {
  %v0 = arith.constant dense<0.001953125> : tensor<128xf32>
  %v1 = arith.constant dense<0.0> : tensor<128xf32>
  %v2 = linalg.reduce { arith.addf } ins(%x : tensor<128x512xf32>) outs(%v1 : tensor<128xf32>) dimensions = [1]
  %v3 = arith.mulf %v2, %v0 : tensor<128xf32>
  %v4 = tensor.empty() : tensor<128x512xf32>
  %v5 = linalg.broadcast ins(%v3 : tensor<128xf32>) outs(%v4 : tensor<128x512xf32>) dimensions = [1]
  %v6 = arith.subf %x, %v5 : tensor<128x512xf32>
  %v7 = arith.mulf %v6, %v6 : tensor<128x512xf32>
  %v8 = arith.constant dense<0.0> : tensor<128xf32>
  %v9 = linalg.reduce { arith.addf } ins(%v7 : tensor<128x512xf32>) outs(%v8 : tensor<128xf32>) dimensions = [1]
  %v10 = arith.mulf %v9, %v0 : tensor<128xf32>
  %v11 = arith.constant dense<1.0e-5> : tensor<128xf32>
  %v12 = arith.addf %v10, %v11 : tensor<128xf32>
  %v13 = math.rsqrt %v12 : tensor<128xf32>
  %v14 = tensor.empty() : tensor<128x512xf32>
  %v15 = linalg.broadcast ins(%v13 : tensor<128xf32>) outs(%v14 : tensor<128x512xf32>) dimensions = [1]
  %v16 = arith.mulf %v6, %v15 : tensor<128x512xf32>
  %v17 = tensor.empty() : tensor<128x512xf32>
  %v18 = linalg.broadcast ins(%g : tensor<512xf32>) outs(%v17 : tensor<128x512xf32>) dimensions = [0]
  %v19 = arith.mulf %v16, %v18 : tensor<128x512xf32>
  %v20 = tensor.empty() : tensor<128x512xf32>
  %v21 = linalg.broadcast ins(%h : tensor<512xf32>) outs(%v20 : tensor<128x512xf32>) dimensions = [0]
  %v22 = arith.addf %v19, %v21 : tensor<128x512xf32>
  %v23 = arith.mulf %v22, %c : tensor<128x512xf32>
  %v24 = arith.constant dense<0.0> : tensor<f32>
  %v25 = linalg.reduce { arith.addf } ins(%v23 : tensor<128x512xf32>) outs(%v24 : tensor<f32>) dimensions = [0, 1]
  return %v25 : tensor<f32>
}
func.func private @loss_grad(tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>)
func.func @main(%x: tensor<128x512xf32>, %g: tensor<512xf32>, %h: tensor<512xf32>, %c: tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>) {
  %r:4 = func.call @loss_grad(%x, %g, %h, %c) : (tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<f32>, tensor<128x512xf32>, tensor<512xf32>, tensor<512xf32>
}
//--- rmsnorm.mlir
func.func private @loss(%x: tensor<128x512xf32> {dist.name = "x"}, %g: tensor<512xf32> {dist.name = "g"}, %c: tensor<128x512xf32> {dist.name = "c"}) -> tensor<f32> {
  %v0 = arith.constant dense<0.001953125> : tensor<128xf32>
  %v1 = arith.mulf %x, %x : tensor<128x512xf32>
  %v2 = arith.constant dense<0.0> : tensor<128xf32>
  %v3 = linalg.reduce { arith.addf } ins(%v1 : tensor<128x512xf32>) outs(%v2 : tensor<128xf32>) dimensions = [1]
  %v4 = arith.mulf %v3, %v0 : tensor<128xf32>
  %v5 = arith.constant dense<1.0e-5> : tensor<128xf32>
  %v6 = arith.addf %v4, %v5 : tensor<128xf32>
  %v7 = math.rsqrt %v6 : tensor<128xf32>
  %v8 = tensor.empty() : tensor<128x512xf32>
  %v9 = linalg.broadcast ins(%v7 : tensor<128xf32>) outs(%v8 : tensor<128x512xf32>) dimensions = [1]
  %v10 = arith.mulf %x, %v9 : tensor<128x512xf32>
  %v11 = tensor.empty() : tensor<128x512xf32>
  %v12 = linalg.broadcast ins(%g : tensor<512xf32>) outs(%v11 : tensor<128x512xf32>) dimensions = [0]
  %v13 = arith.mulf %v10, %v12 : tensor<128x512xf32>
  %v14 = arith.mulf %v13, %c : tensor<128x512xf32>
  %v15 = arith.constant dense<0.0> : tensor<f32>
  %v16 = linalg.reduce { arith.addf } ins(%v14 : tensor<128x512xf32>) outs(%v15 : tensor<f32>) dimensions = [0, 1]
  return %v16 : tensor<f32>
}
func.func private @loss_grad(tensor<128x512xf32>, tensor<512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>)
func.func @main(%x: tensor<128x512xf32>, %g: tensor<512xf32>, %c: tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>) {
  %r:3 = func.call @loss_grad(%x, %g, %c) : (tensor<128x512xf32>, tensor<512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>, tensor<512xf32>)
  return %r#0, %r#1, %r#2 : tensor<f32>, tensor<128x512xf32>, tensor<512xf32>
}
//--- softmax.mlir
func.func private @loss(%x: tensor<128x512xf32> {dist.name = "x"}, %c: tensor<128x512xf32> {dist.name = "c"}) -> tensor<f32> {
  %v0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %v1 = linalg.reduce { arith.maximumf } ins(%x : tensor<128x512xf32>) outs(%v0 : tensor<128xf32>) dimensions = [1]
  %v2 = tensor.empty() : tensor<128x512xf32>
  %v3 = linalg.broadcast ins(%v1 : tensor<128xf32>) outs(%v2 : tensor<128x512xf32>) dimensions = [1]
  %v4 = arith.subf %x, %v3 : tensor<128x512xf32>
  %v5 = math.exp %v4 : tensor<128x512xf32>
  %v6 = arith.constant dense<0.0> : tensor<128xf32>
  %v7 = linalg.reduce { arith.addf } ins(%v5 : tensor<128x512xf32>) outs(%v6 : tensor<128xf32>) dimensions = [1]
  %v8 = tensor.empty() : tensor<128x512xf32>
  %v9 = linalg.broadcast ins(%v7 : tensor<128xf32>) outs(%v8 : tensor<128x512xf32>) dimensions = [1]
  %v10 = arith.divf %v5, %v9 : tensor<128x512xf32>
  %v11 = arith.mulf %v10, %c : tensor<128x512xf32>
  %v12 = arith.constant dense<0.0> : tensor<f32>
  %v13 = linalg.reduce { arith.addf } ins(%v11 : tensor<128x512xf32>) outs(%v12 : tensor<f32>) dimensions = [0, 1]
  return %v13 : tensor<f32>
}
func.func private @loss_grad(tensor<128x512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>)
func.func @main(%x: tensor<128x512xf32>, %c: tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>) {
  %r:2 = func.call @loss_grad(%x, %c) : (tensor<128x512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<128x512xf32>
}
//--- entropy.mlir
func.func private @loss(%x: tensor<128x512xf32> {dist.name = "x"}, %t: tensor<128xi32> {dist.name = "t"}) -> tensor<f32> {
  %v0 = arith.constant dense<0xFF800000> : tensor<128xf32>
  %v1 = linalg.reduce { arith.maximumf } ins(%x : tensor<128x512xf32>) outs(%v0 : tensor<128xf32>) dimensions = [1]
  %v2 = tensor.empty() : tensor<128x512xf32>
  %v3 = linalg.broadcast ins(%v1 : tensor<128xf32>) outs(%v2 : tensor<128x512xf32>) dimensions = [1]
  %v4 = arith.subf %x, %v3 : tensor<128x512xf32>
  %v5 = math.exp %v4 : tensor<128x512xf32>
  %v6 = arith.constant dense<0.0> : tensor<128xf32>
  %v7 = linalg.reduce { arith.addf } ins(%v5 : tensor<128x512xf32>) outs(%v6 : tensor<128xf32>) dimensions = [1]
  %v8 = math.log %v7 : tensor<128xf32>
  %v9 = tensor.empty() : tensor<128x512xf32>
  %v10 = linalg.broadcast ins(%v8 : tensor<128xf32>) outs(%v9 : tensor<128x512xf32>) dimensions = [1]
  %v11 = arith.subf %v4, %v10 : tensor<128x512xf32>
  %v12 = tensor.empty() : tensor<128x512xf32>
  %v13 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]} ins(%t, %v11 : tensor<128xi32>, tensor<128x512xf32>) outs(%v12 : tensor<128x512xf32>) {
  ^bb0(%label: i32, %p: f32, %o: f32):
    %j = linalg.index 1 : index
    %k = arith.index_cast %j : index to i32
    %here = arith.cmpi eq, %k, %label : i32
    %zero = arith.constant 0.0 : f32
    %q = arith.select %here, %p, %zero : f32
    linalg.yield %q : f32
  } -> tensor<128x512xf32>
  %v14 = arith.constant dense<0.0> : tensor<f32>
  %v15 = linalg.reduce { arith.addf } ins(%v13 : tensor<128x512xf32>) outs(%v14 : tensor<f32>) dimensions = [0, 1]
  return %v15 : tensor<f32>
}
func.func private @loss_grad(tensor<128x512xf32>, tensor<128xi32>) -> (tensor<f32>, tensor<128x512xf32>)
func.func @main(%x: tensor<128x512xf32>, %t: tensor<128xi32>) -> (tensor<f32>, tensor<128x512xf32>) {
  %r:2 = func.call @loss_grad(%x, %t) : (tensor<128x512xf32>, tensor<128xi32>) -> (tensor<f32>, tensor<128x512xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<128x512xf32>
}
//--- gelu.mlir
func.func private @loss(%x: tensor<128x512xf32> {dist.name = "x"}, %c: tensor<128x512xf32> {dist.name = "c"}) -> tensor<f32> {
  %v0 = arith.mulf %x, %x : tensor<128x512xf32>
  %v1 = arith.mulf %v0, %x : tensor<128x512xf32>
  %v2 = arith.constant dense<0.044715> : tensor<128x512xf32>
  %v3 = arith.mulf %v1, %v2 : tensor<128x512xf32>
  %v4 = arith.addf %x, %v3 : tensor<128x512xf32>
  %v5 = arith.constant dense<0.79788456> : tensor<128x512xf32>
  %v6 = arith.mulf %v4, %v5 : tensor<128x512xf32>
  %v7 = math.tanh %v6 : tensor<128x512xf32>
  %v8 = arith.constant dense<0.5> : tensor<128x512xf32>
  %v9 = arith.mulf %x, %v8 : tensor<128x512xf32>
  %v10 = arith.constant dense<1.0> : tensor<128x512xf32>
  %v11 = arith.addf %v7, %v10 : tensor<128x512xf32>
  %v12 = arith.mulf %v9, %v11 : tensor<128x512xf32>
  %v13 = arith.mulf %v12, %c : tensor<128x512xf32>
  %v14 = arith.constant dense<0.0> : tensor<f32>
  %v15 = linalg.reduce { arith.addf } ins(%v13 : tensor<128x512xf32>) outs(%v14 : tensor<f32>) dimensions = [0, 1]
  return %v15 : tensor<f32>
}
func.func private @loss_grad(tensor<128x512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>)
func.func @main(%x: tensor<128x512xf32>, %c: tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>) {
  %r:2 = func.call @loss_grad(%x, %c) : (tensor<128x512xf32>, tensor<128x512xf32>) -> (tensor<f32>, tensor<128x512xf32>)
  return %r#0, %r#1 : tensor<f32>, tensor<128x512xf32>
}
