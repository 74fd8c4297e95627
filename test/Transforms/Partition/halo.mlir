// RUN: tessera-opt %s --tessera-pipeline="compile-to=partitioned" | FileCheck %s

// A padded convolution with cut height receives one row from each neighbor; the exchange of the
// halo also creates the padding outside the image.
dist.process_mesh @m(shape = [8], dim_names = ["h"])
// CHECK-LABEL: func.func @main(
// CHECK: %[[X:.*]] = dist.halo_exchange %arg0 over @m ["h"] dim = 1 low = 1 high = 1 {{.*}}fill = 0.000000e+00
// CHECK-SAME: tensor<2x4x32x3xf32> -> tensor<2x6x32x3xf32>
// CHECK: tensor.pad %[[X]] low[0, 0, 1, 0] high[0, 0, 1, 0]
// CHECK: linalg.conv_2d_nhwc_hwcf
// CHECK-NOT: dist.{{halo_exchange|exchange|all_}}
// CHECK: return
func.func @main(%x: tensor<2x32x32x3xf32> {dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %w: tensor<3x3x3x16xf32> {dist.sharding = #dist.sharding<@m, [replicate]>}) -> tensor<2x32x32x16xf32> {
  %c0 = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %c0 : f32
  } : tensor<2x32x32x3xf32> to tensor<2x34x34x3xf32>
  %e = tensor.empty() : tensor<2x32x32x16xf32>
  %f = linalg.fill ins(%c0 : f32) outs(%e : tensor<2x32x32x16xf32>) -> tensor<2x32x32x16xf32>
  %y = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%p, %w : tensor<2x34x34x3xf32>, tensor<3x3x3x16xf32>) outs(%f : tensor<2x32x32x16xf32>) -> tensor<2x32x32x16xf32>
  return %y : tensor<2x32x32x16xf32>
}
