; Arrays in shared memory: one of a fixed size, one that the launch sizes.
; launch: 1 4 shared=16 i32[]:1,2,3,4
; expect: [44, 33, 22, 11]
target triple = "nvptx64-nvidia-cuda"
@tile = internal addrspace(3) global [4 x i32] undef, align 4
@dynamic = external addrspace(3) global [0 x i32], align 4

define ptx_kernel void @shared(ptr %x) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  %mine = getelementptr [4 x i32], ptr addrspacecast (ptr addrspace(3) @tile to ptr), i32 0, i32 %t
  store i32 %v, ptr %mine
  %ten = mul i32 %v, 10
  %also = getelementptr i32, ptr addrspace(3) @dynamic, i32 %t
  store i32 %ten, ptr addrspace(3) %also
  call void @llvm.nvvm.barrier0()
  %other = sub i32 3, %t
  %from = getelementptr [4 x i32], ptr addrspace(3) @tile, i32 0, i32 %other
  %a = load i32, ptr addrspace(3) %from
  %from.2 = getelementptr i32, ptr addrspace(3) @dynamic, i32 %other
  %b = load i32, ptr addrspace(3) %from.2
  %sum = add i32 %a, %b
  store i32 %sum, ptr %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
