// Products of bf16, of matrices and of images, sharded: as in the interpreter, with equal bits for any number of workers.
// RUN: tessera run %s --check=interpreter | FileCheck %s
// RUN: tessera compile %s -o %t.tsra
// RUN: tessera-exec %t.tsra --cores 1 | grep checksum > %t.one
// RUN: tessera-exec %t.tsra --cores 3 --no-pin | grep checksum > %t.three
// RUN: cmp %t.one %t.three
// CHECK: check y ok
// CHECK: check z ok
// CHECK: check p ok
dist.process_mesh @m(shape = [4], dim_names = ["x"])

func.func @main(%x: tensor<4x32x18x18xbf16> {dist.name = "x", dist.sharding = #dist.sharding<@m, [shard(0)]>},
                %w: tensor<48x32x3x3xbf16> {dist.name = "w"}, %h: tensor<4x17x17x33xbf16> {dist.name = "h"},
                %v: tensor<3x3x33x40xbf16> {dist.name = "v"},
                %a: tensor<70x301xbf16> {dist.name = "a", dist.sharding = #dist.sharding<@m, [shard(1)]>},
                %b: tensor<301x65xbf16> {dist.name = "b"})
    -> (tensor<4x48x16x16xbf16> {dist.name = "y"}, tensor<4x15x15x40xbf16> {dist.name = "z"}, tensor<70x65xbf16> {dist.name = "p"}) {
  %c = arith.constant dense<0.0> : tensor<4x48x16x16xbf16>
  %d = arith.constant dense<0.0> : tensor<4x15x15x40xbf16>
  %e = arith.constant dense<0.0> : tensor<70x65xbf16>
  %y = linalg.conv_2d_nchw_fchw ins(%x, %w : tensor<4x32x18x18xbf16>, tensor<48x32x3x3xbf16>) outs(%c : tensor<4x48x16x16xbf16>) -> tensor<4x48x16x16xbf16>
  %z = linalg.conv_2d_nhwc_hwcf ins(%h, %v : tensor<4x17x17x33xbf16>, tensor<3x3x33x40xbf16>) outs(%d : tensor<4x15x15x40xbf16>) -> tensor<4x15x15x40xbf16>
  %p = linalg.matmul ins(%a, %b : tensor<70x301xbf16>, tensor<301x65xbf16>) outs(%e : tensor<70x65xbf16>) -> tensor<70x65xbf16>
  return %y, %z, %p : tensor<4x48x16x16xbf16>, tensor<4x15x15x40xbf16>, tensor<70x65xbf16>
}
