// RUN: tessera run %s --check=interpreter | FileCheck %s
// RUN: tessera run %s --check=interpreter --backend stub | FileCheck %s

// Signs of zeros select the side of the axis of an angle; powers of infinities and of -1 follow C.
// CHECK: check  angle  ok
// CHECK: check  power  ok
// CHECK: check  area  ok
func.func @main() -> (tensor<6xf32> {dist.name = "angle"}, tensor<6xf32> {dist.name = "power"},
                      tensor<3xf32> {dist.name = "area"}) {
  %y = arith.constant dense<[0.0, -0.0, 0.0, -0.0, -0.0, -1.0e-30]> : tensor<6xf32>
  %x = arith.constant dense<[0.0, 0.0, -0.0, -0.0, -1.0, -1.0e20]> : tensor<6xf32>
  %angle = math.atan2 %y, %x : tensor<6xf32>
  %b = arith.constant dense<[0xFF800000, 0xFF800000, 0xFF800000, -1.0, -1.0, -2.0]> : tensor<6xf32>
  %e = arith.constant dense<[0.5, -0.5, 3.0, 0x7F800000, 0xFF800000, 0.5]> : tensor<6xf32>
  %power = math.powf %b, %e : tensor<6xf32>
  %a = arith.constant dense<[-1.0e20, 1.0, 4.0]> : tensor<3xf32>
  %area = math.acosh %a : tensor<3xf32>
  return %angle, %power, %area : tensor<6xf32>, tensor<6xf32>, tensor<3xf32>
}
