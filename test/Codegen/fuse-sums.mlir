// For GPUs, sums over many rows join the kernel that visits these rows.
// RUN: tessera-opt %s --pass-pipeline="builtin.module(func.func(codegen-prepare,codegen-fuse{sums=true}))" --split-input-file | FileCheck %s
// RUN: tessera-opt %s --codegen-prepare --codegen-fuse --split-input-file | FileCheck %s --check-prefix=APART

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
#col = affine_map<(d0, d1) -> (d1)>
// One sum reads a value computed by the kernel, the other an operand of it.
// CHECK-LABEL: func.func @made_and_read(
// CHECK: rt.group
// CHECK: } : tensor<1024x64xf32>, tensor<1024xf32>, tensor<64xf32>, tensor<64xf32>
// CHECK-NOT: rt.group
// APART-LABEL: func.func @made_and_read(
// APART-COUNT-3: rt.group
func.func @made_and_read(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<1024xf32>, tensor<64xf32>, tensor<64xf32>)
    attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %y = math.exp %x : tensor<1024x64xf32>
  %er = tensor.empty() : tensor<1024xf32>
  %zr = linalg.fill ins(%zero : f32) outs(%er : tensor<1024xf32>) -> tensor<1024xf32>
  %r = linalg.reduce { arith.addf } ins(%y : tensor<1024x64xf32>) outs(%zr : tensor<1024xf32>) dimensions = [1]
  %ec = tensor.empty() : tensor<64xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64xf32>) -> tensor<64xf32>
  %c = linalg.reduce { arith.addf } ins(%y : tensor<1024x64xf32>) outs(%zc : tensor<64xf32>) dimensions = [0]
  %d = linalg.reduce { arith.addf } ins(%x : tensor<1024x64xf32>) outs(%zc : tensor<64xf32>) dimensions = [0]
  return %y, %r, %c, %d : tensor<1024x64xf32>, tensor<1024xf32>, tensor<64xf32>, tensor<64xf32>
}

// -----

// A sum over fewer rows stays a separate kernel.
// CHECK-LABEL: func.func @few_rows(
// CHECK-COUNT-2: rt.group
func.func @few_rows(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %y = math.exp %x : tensor<64x64xf32>
  %ec = tensor.empty() : tensor<64xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64xf32>) -> tensor<64xf32>
  %c = linalg.reduce { arith.addf } ins(%y : tensor<64x64xf32>) outs(%zc : tensor<64xf32>) dimensions = [0]
  return %y, %c : tensor<64x64xf32>, tensor<64xf32>
}

// -----

// An op that needs the sum and computes the next summand cannot join the first kernel: they would depend on each other.
// CHECK-LABEL: func.func @one_after_another(
// CHECK-COUNT-2: rt.group
// CHECK-NOT: rt.group
func.func @one_after_another(%x: tensor<1024x64xf32>) -> (tensor<1024x64xf32>, tensor<64xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %y = math.exp %x : tensor<1024x64xf32>
  %ec = tensor.empty() : tensor<64xf32>
  %zc = linalg.fill ins(%zero : f32) outs(%ec : tensor<64xf32>) -> tensor<64xf32>
  %c = linalg.reduce { arith.addf } ins(%y : tensor<1024x64xf32>) outs(%zc : tensor<64xf32>) dimensions = [0]
  %e = tensor.empty() : tensor<1024x64xf32>
  %b = linalg.broadcast ins(%c : tensor<64xf32>) outs(%e : tensor<1024x64xf32>) dimensions = [0]
  %z = arith.subf %y, %b : tensor<1024x64xf32>
  %d = linalg.reduce { arith.addf } ins(%z : tensor<1024x64xf32>) outs(%zc : tensor<64xf32>) dimensions = [0]
  return %z, %d : tensor<1024x64xf32>, tensor<64xf32>
}
