; Vectors: loads and stores of four words, arithmetic by element, shuffles, elements by index, bitcasts.
; launch: 1 1 i32[]:1,2,3,4,0,0,0,0 i32[]:2,0
; expect: [1, 2, 3, 4, 22, 44, 33, 11] ; [2, 0x04030201 + 3]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @vectors(ptr %x, ptr %y) {
  %v = load <4 x i32>, ptr %x, align 16
  %w = mul <4 x i32> %v, splat (i32 11)
  %s = shufflevector <4 x i32> %w, <4 x i32> poison, <4 x i32> <i32 1, i32 3, i32 2, i32 0>
  %p = getelementptr i8, ptr %x, i64 16
  store <4 x i32> %s, ptr %p, align 16
  %i = load i32, ptr %y
  %e = extractelement <4 x i32> %v, i32 %i
  %bytes = trunc <4 x i32> %v to <4 x i8>
  %word = bitcast <4 x i8> %bytes to i32
  %sum = add i32 %word, %e
  %u = insertelement <2 x i32> poison, i32 %i, i64 0
  %u.2 = insertelement <2 x i32> %u, i32 %sum, i64 1
  store <2 x i32> %u.2, ptr %y, align 8
  ret void
}
