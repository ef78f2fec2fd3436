; A structure that is passed by value, handed on to a device function that changes its copy.
; launch: 1 2 i32:1 i16:2 i64:100 i32[]:0,0
; expect: [1 + 1 + 2 + 100] * 2
target triple = "nvptx64-nvidia-cuda"
%view = type { i32, i16, i64 }

define internal i32 @changed(ptr byval(%view) align 8 %v) {
  %p = getelementptr inbounds %view, ptr %v, i32 0, i32 0
  %old = load i32, ptr %p, align 8
  store i32 -1, ptr %p, align 8
  ret i32 %old
}

define ptx_kernel void @byval(ptr byval(%view) align 8 %v, ptr %out) {
  %first = call i32 @changed(ptr byval(%view) align 8 %v)
  %again = load i32, ptr %v, align 8
  %p = getelementptr inbounds %view, ptr %v, i32 0, i32 1
  %short = load i16, ptr %p, align 4
  %wide = zext i16 %short to i32
  %q = getelementptr inbounds %view, ptr %v, i32 0, i32 2
  %long = load i64, ptr %q, align 8
  %low = trunc i64 %long to i32
  %s.1 = add i32 %first, %again
  %s.2 = add i32 %s.1, %wide
  %s.3 = add i32 %s.2, %low
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %r = getelementptr i32, ptr %out, i32 %t
  store i32 %s.3, ptr %r
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
