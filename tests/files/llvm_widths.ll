; Numbers of other widths than memory has: a mask of three bits, a product of 33 and a remainder of 24 bits.
; launch: 1 3 i32[]:7,100000,-1 i64[]:0,0,0
; expect: [7, 100000, -1] ; [7 + 49 + 7 % 1000, 0 + 100000**2 % 2**33 + 100000 % 1000, 7 + (2**32 - 1)**2 % 2**33 + (2**24 - 1) % 1000]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @widths(ptr %x, ptr %out) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %a = trunc i32 %v to i3
  %a.w = zext i3 %a to i64
  %b = zext i32 %v to i33
  %b.2 = mul i33 %b, %b
  %b.w = zext i33 %b.2 to i64
  %c = trunc i32 %v to i24
  %c.2 = urem i24 %c, 1000
  %c.w = zext i24 %c.2 to i64
  %s = add i64 %a.w, %b.w
  %s.2 = add i64 %s, %c.w
  %q = getelementptr i64, ptr %out, i32 %t
  store i64 %s.2, ptr %q
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
