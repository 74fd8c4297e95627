// RUN: tessera explain %s --function restricted | FileCheck %s --check-prefix=RESTRICTED
// RUN: tessera explain %s --function framed | FileCheck %s --check-prefix=FRAMED
// RUN: tessera run %s --function restricted --check
// RUN: tessera run %s --function framed --check

dist.process_mesh @line(shape = [4], dim_names = ["s"])

#one = affine_map<(d0) -> (d0)>

// Every second element, and every second from the third on: common elements are sent once. 33 are cut into 9,
// 9, 9 and 6, and the last device needs elements 24 to 32, of which it lacks 24 and 26; device 2 lacks 16.
// RESTRICTED: total: 1 collective, 8 bytes on the wire
func.func @restricted(%x: tensor<33xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>})
    -> (tensor<16xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) {
  %a = tensor.extract_slice %x[0] [16] [2] : tensor<33xf32> to tensor<16xf32>
  %b = tensor.extract_slice %x[2] [16] [2] : tensor<33xf32> to tensor<16xf32>
  %y = arith.addf %a, %b : tensor<16xf32>
  return %y : tensor<16xf32>
}

// Frames of 16 elements, one every 8: the frames are cut, not their elements, although a frame has
// more elements than there are frames. Device 1 has elements 26 to 51 and sends six to the first,
// which needs elements up to 31, and four to the third, which needs those from 48 on.
// FRAMED: total: 1 collective, 40 bytes on the wire
func.func @framed(%x: tensor<104xf32> {dist.sharding = #dist.sharding<@line, [shard(0)]>}) -> tensor<12x16xf32> {
  %e = tensor.empty() : tensor<12x16xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (8 * i + j)>, affine_map<(i, j) -> (i, j)>],
                       iterator_types = ["parallel", "parallel"]} ins(%x : tensor<104xf32>) outs(%e : tensor<12x16xf32>) {
  ^bb0(%a: f32, %out: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<12x16xf32>
  return %y : tensor<12x16xf32>
}
