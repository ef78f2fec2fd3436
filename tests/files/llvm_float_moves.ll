; Floating-point values are moved by their bits; a literal is one of the bits of a double.
; launch: 1 2 u32[]:0x7fc00001,0x40000000 u32[]:0,0
; expect: [0x7fc00001, 0x40000000] ; [0x40000000, 0x3f800000]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @moves(ptr %x, ptr %y) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = icmp eq i32 %t, 0
  %p = getelementptr float, ptr %x, i64 1
  %f = load float, ptr %p, align 4
  %g = select i1 %first, float %f, float 1.0
  %q = getelementptr float, ptr %y, i32 %t
  store float %g, ptr %q, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
