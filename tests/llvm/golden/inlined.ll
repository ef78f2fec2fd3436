; A device function of two returns, whose arguments lie in local memory as clang -O0 has it.
target triple = "nvptx64-nvidia-cuda"

define internal i32 @clamp(i32 %v, i32 %top) {
entry:
  %v.addr = alloca i32, align 4
  store i32 %v, ptr %v.addr, align 4
  %0 = load i32, ptr %v.addr, align 4
  %above = icmp sgt i32 %0, %top
  br i1 %above, label %then, label %else

then:
  ret i32 %top

else:
  %1 = load i32, ptr %v.addr, align 4
  ret i32 %1
}

define ptx_kernel void @clamped(ptr %data, i32 %top) {
entry:
  %data.addr = alloca ptr, align 8
  store ptr %data, ptr %data.addr, align 8
  %0 = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %1 = load ptr, ptr %data.addr, align 8
  %p = getelementptr inbounds i32, ptr %1, i32 %0
  %2 = load i32, ptr %p, align 4
  %3 = call i32 @clamp(i32 %2, i32 %top)
  store i32 %3, ptr %p, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
