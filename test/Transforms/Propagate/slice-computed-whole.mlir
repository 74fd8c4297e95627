// RUN: tessera-opt %s --tessera-pipeline | FileCheck %s
// RUN: tessera explain %s | FileCheck %s --check-prefix=BYTES
// RUN: tessera run %s --check

// All devices need a value computed from the rows of one: it sends them once, and all devices
// compute it. Cut, the rows would first be scattered, and then gathered.

dist.process_mesh @line(shape = [4], dim_names = ["s"])

// CHECK: dist.all_gather
// CHECK: math.tanh
// CHECK-NOT: dist.
// CHECK: return
// BYTES: total: 1 collective, 512 bytes on the wire
func.func @main(%x: tensor<32x16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<8x16xf32> {dist.sharding = #dist.sharding<@line, [replicate]>}) {
  %a = tensor.extract_slice %x[0, 0] [8, 16] [1, 1] : tensor<32x16xf32> to tensor<8x16xf32>
  %y = math.tanh %a : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
