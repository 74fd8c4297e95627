// A multiply-add of 16-bit floats is an f32 one, then rounded, as on CPUs and in the emulator.
// RUN: tessera-opt %s --tessera-check-gpu-kernels -o /dev/null | FileCheck %s

// CHECK: scalar_bf16: {{.*}} equal
func.func private @scalar_bf16(%x: tensor<bf16>, %o: tensor<bf16>) -> tensor<bf16> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<() -> ()>, affine_map<() -> ()>], iterator_types = []}
      ins(%x : tensor<bf16>) outs(%o : tensor<bf16>) {
  ^bb0(%a: bf16, %b: bf16):
    %f = math.fma %a, %a, %a : bf16
    linalg.yield %f : bf16
  } -> tensor<bf16>
  return %0 : tensor<bf16>
}

// CHECK: vector_f16: {{.*}} equal
func.func private @vector_f16(%x: tensor<1000xf16>, %o: tensor<1000xf16>) -> tensor<1000xf16> attributes {kernel.reads = 1 : i64} {
  %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%x : tensor<1000xf16>) outs(%o : tensor<1000xf16>) {
  ^bb0(%a: f16, %b: f16):
    %f = math.fma %a, %a, %a : f16
    linalg.yield %f : f16
  } -> tensor<1000xf16>
  return %0 : tensor<1000xf16>
}
