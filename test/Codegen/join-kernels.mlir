// RUN: tessera-opt %s --pass-pipeline='builtin.module(func.func(codegen-prepare,codegen-form-gemms,codegen-form-contractions,codegen-fuse),codegen-outline-kernels,codegen-join-kernels{bytes=32768})' --split-input-file | FileCheck %s
// RUN: tessera-opt %s --codegen --split-input-file | FileCheck %s --check-prefix=RT

// A bias along the rows and an activation: the kernel takes blocks of the product and the whole bias.

// CHECK-LABEL: func.func @bias_tanh(
// CHECK-SAME: %[[BIAS:[a-z0-9]*]]: tensor<128xf32>
// CHECK: %[[C:.*]] = linalg.matmul
// CHECK-NEXT: tensor.empty
// CHECK-NEXT: rt.call_blocks @[[K:.*]](%[[BIAS]], %[[C]], %{{.*}}) blocks 8 cut [false, true, true]
// CHECK: func.func private @[[K]](%{{.*}}: tensor<128xf32>, %{{.*}}: tensor<64x128xf32>, %{{.*}}: tensor<64x128xf32>) -> tensor<64x128xf32> attributes {kernel.reads = 2 : i64}
// RT-LABEL: rt.program @bias_tanh
// RT: rt.gemm %{{.*}} to %[[C:.*]] batch
// RT-NEXT: rt.launch @{{.*}}_block(%{{.*}}, %[[C]]) to (%[[C]]) blocks 2 cut [false, true, true] joins
func.func @bias_tanh(%a: tensor<512x64xf32>, %b: tensor<64x128xf32>, %bias: tensor<128xf32>) -> tensor<512x128xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x128xf32>) outs(%z : tensor<512x128xf32>) -> tensor<512x128xf32>
  %wide = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%e : tensor<512x128xf32>) dimensions = [0]
  %sum = arith.addf %m, %wide : tensor<512x128xf32>
  %y = math.tanh %sum : tensor<512x128xf32>
  return %y : tensor<512x128xf32>
}

// -----

// Directly behind the product a residual stays in a kernel behind it.

// CHECK-LABEL: func.func @bias_residual(
// CHECK-NOT: rt.call_blocks
func.func @bias_residual(%a: tensor<512x64xf32>, %b: tensor<64x128xf32>, %bias: tensor<128xf32>, %x: tensor<512x128xf32>) -> tensor<512x128xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x128xf32>) outs(%z : tensor<512x128xf32>) -> tensor<512x128xf32>
  %wide = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%e : tensor<512x128xf32>) dimensions = [0]
  %sum = arith.addf %m, %wide : tensor<512x128xf32>
  %y = arith.addf %sum, %x : tensor<512x128xf32>
  return %y : tensor<512x128xf32>
}

// -----

// A reduction within rows joins; the vector of its results is cut, too.

// CHECK-LABEL: func.func @row_maxima(
// CHECK: rt.call_blocks @{{.*}}({{.*}}) blocks 8 cut [true, true] : (tensor<512x128xf32>, tensor<512xf32>) -> tensor<512xf32>
func.func @row_maxima(%a: tensor<512x64xf32>, %b: tensor<64x128xf32>) -> tensor<512xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x128xf32>) outs(%z : tensor<512x128xf32>) -> tensor<512x128xf32>
  %v = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%least : f32) outs(%v : tensor<512xf32>) -> tensor<512xf32>
  %r = linalg.reduce ins(%m : tensor<512x128xf32>) outs(%f : tensor<512xf32>) dimensions = [1]
    (%x: f32, %y: f32) { %s = arith.maximumf %x, %y : f32  linalg.yield %s : f32 }
  return %r : tensor<512xf32>
}

// -----

// A reduction over rows needs all of them, and so does a transposition.

// CHECK-LABEL: func.func @column_sums(
// CHECK-NOT: rt.call_blocks
func.func @column_sums(%a: tensor<512x64xf32>, %b: tensor<64x128xf32>) -> tensor<128xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x128xf32>) outs(%z : tensor<512x128xf32>) -> tensor<512x128xf32>
  %v = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%zero : f32) outs(%v : tensor<128xf32>) -> tensor<128xf32>
  %r = linalg.reduce { arith.addf } ins(%m : tensor<512x128xf32>) outs(%f : tensor<128xf32>) dimensions = [0]
  return %r : tensor<128xf32>
}

// -----

// CHECK-LABEL: func.func @transposed(
// CHECK-NOT: rt.call_blocks
func.func @transposed(%a: tensor<512x64xf32>, %b: tensor<64x128xf32>, %x: tensor<128x512xf32>) -> tensor<128x512xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<512x128xf32>
  %t = tensor.empty() : tensor<128x512xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<512x128xf32>) -> tensor<512x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<512x64xf32>, tensor<64x128xf32>) outs(%z : tensor<512x128xf32>) -> tensor<512x128xf32>
  %s = math.absf %m : tensor<512x128xf32>
  %w = linalg.transpose ins(%s : tensor<512x128xf32>) outs(%t : tensor<128x512xf32>) permutation = [1, 0]
  %y = arith.subf %x, %w : tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}

// -----

// The update of a weight moves up to its gradient, from behind other steps.

// CHECK-LABEL: func.func @update(
// CHECK: %[[G:.*]] = linalg.contract
// CHECK: rt.call_blocks @{{.*}}(%[[G]], {{.*}}) blocks {{.*}} cut [true, true, true]
// CHECK: linalg.matmul
// RT-LABEL: rt.program @update
// RT: rt.gemm
// RT-NEXT: rt.launch @{{.*}}(%{{.*}}, %[[W:.*]]) to (%[[W]]) blocks {{.*}} joins
func.func @update(%w: tensor<256x128xf32>, %x: tensor<64x256xf32>, %dy: tensor<64x128xf32>, %v: tensor<128x128xf32>)
    -> (tensor<256x128xf32> {dist.feeds = 0}, tensor<64x128xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %g = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %dy : tensor<64x256xf32>, tensor<64x128xf32>) outs(%z : tensor<256x128xf32>) -> tensor<256x128xf32>
  %e2 = tensor.empty() : tensor<64x128xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x128xf32>) -> tensor<64x128xf32>
  %d = linalg.matmul ins(%dy, %v : tensor<64x128xf32>, tensor<128x128xf32>) outs(%z2 : tensor<64x128xf32>) -> tensor<64x128xf32>
  %half = math.sqrt %g : tensor<256x128xf32>
  %n = arith.subf %w, %half : tensor<256x128xf32>
  return %n, %d : tensor<256x128xf32>, tensor<64x128xf32>
}

// -----

// Not where the old weight is read between.

// CHECK-LABEL: func.func @read_between(
// CHECK-NOT: rt.call_blocks
func.func @read_between(%w: tensor<256x128xf32>, %x: tensor<64x256xf32>, %dy: tensor<64x128xf32>)
    -> (tensor<256x128xf32> {dist.feeds = 0}, tensor<64x256xf32>) attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x128xf32>) -> tensor<256x128xf32>
  %g = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%x, %dy : tensor<64x256xf32>, tensor<64x128xf32>) outs(%z : tensor<256x128xf32>) -> tensor<256x128xf32>
  %e2 = tensor.empty() : tensor<64x256xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %d = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
    ins(%dy, %w : tensor<64x128xf32>, tensor<256x128xf32>) outs(%z2 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %half = math.sqrt %g : tensor<256x128xf32>
  %n = arith.subf %w, %half : tensor<256x128xf32>
  return %n, %d : tensor<256x128xf32>, tensor<64x256xf32>
}

// -----

// Images of a convolution are blocks.

// CHECK-LABEL: func.func @convolution(
// CHECK: rt.contraction
// CHECK: rt.call_blocks @{{.*}}(%{{.*}}, %{{.*}}, %{{.*}}) blocks 4 cut [false, true, true]
func.func @convolution(%x: tensor<4x18x18x64xf32>, %w: tensor<3x3x64x64xf32>, %bias: tensor<64xf32>) -> tensor<4x16x16x64xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4x16x16x64xf32>
  %e = tensor.empty() : tensor<4x16x16x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16x16x64xf32>) -> tensor<4x16x16x64xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%x, %w : tensor<4x18x18x64xf32>, tensor<3x3x64x64xf32>) outs(%z : tensor<4x16x16x64xf32>) -> tensor<4x16x16x64xf32>
  %wide = linalg.broadcast ins(%bias : tensor<64xf32>) outs(%e : tensor<4x16x16x64xf32>) dimensions = [0, 1, 2]
  %sum = arith.addf %c, %wide : tensor<4x16x16x64xf32>
  %y = arith.maximumf %sum, %zeros : tensor<4x16x16x64xf32>
  return %y : tensor<4x16x16x64xf32>
}

// -----

// Results below two blocks of 4 KiB, an eighth of what is preferred, stay as they are.

// CHECK-LABEL: func.func @small(
// CHECK-NOT: rt.call_blocks
func.func @small(%a: tensor<12x64xf32>, %b: tensor<64x128xf32>, %bias: tensor<128xf32>) -> tensor<12x128xf32> attributes {dist.view = "local"} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x128xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<12x128xf32>) -> tensor<12x128xf32>
  %m = linalg.matmul ins(%a, %b : tensor<12x64xf32>, tensor<64x128xf32>) outs(%z : tensor<12x128xf32>) -> tensor<12x128xf32>
  %wide = linalg.broadcast ins(%bias : tensor<128xf32>) outs(%e : tensor<12x128xf32>) dimensions = [0]
  %y = arith.addf %m, %wide : tensor<12x128xf32>
  return %y : tensor<12x128xf32>
}
