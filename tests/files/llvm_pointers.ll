; Pointers that are chosen, merged, kept in local memory, subtracted, and taken apart as numbers.
; launch: 1 4 i32[]:1,2,3,4 i32[]:10,20,30,40
; expect: [1, 2, 3, 4] ; [1 + 1 + 0 + 4, 20 + 1 + 4 + 8, 3 + 1 + 0 + 12, 40 + 1 + 4 + 16]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @pointers(ptr %x, ptr %y) {
entry:
  %kept = alloca ptr, align 8
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %low = and i32 %t, 1
  %odd = icmp ne i32 %low, 0
  %one = select i1 %odd, ptr %y, ptr %x
  store ptr %one, ptr %kept, align 8
  br i1 %odd, label %a, label %b
a:
  br label %c
b:
  br label %c
c:
  %two = phi ptr [ %y, %a ], [ %x, %b ]
  %same = icmp eq ptr %one, %two
  %number.1 = zext i1 %same to i32
  %again = load ptr, ptr %kept, align 8
  %p = getelementptr i32, ptr %again, i32 %t
  %v = load i32, ptr %p
  %address = ptrtoint ptr %p to i64
  %part = and i64 %address, 7
  %number.2 = trunc i64 %part to i32
  %next = getelementptr i8, ptr %p, i64 4
  %end = ptrtoint ptr %next to i64
  %start = ptrtoint ptr %two to i64
  %bytes = sub i64 %end, %start
  %number.3 = trunc i64 %bytes to i32
  %s.1 = add i32 %v, %number.1
  %s.2 = add i32 %s.1, %number.2
  %s.3 = add i32 %s.2, %number.3
  %moved = add i64 %address, 0
  %back = inttoptr i64 %moved to ptr
  %valid = icmp ne ptr %back, null
  %q = getelementptr i32, ptr %y, i32 %t
  call void @llvm.nvvm.barrier0()
  br i1 %valid, label %put, label %done
put:
  store i32 %s.3, ptr %q
  br label %done
done:
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier0()
