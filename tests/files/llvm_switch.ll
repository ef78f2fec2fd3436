; switch: a few cases, many, several that go to one block, a default.
; launch: 1 12 i32[]:0,1,2,3,4,5,6,7,8,9,-1,100
; expect: [10, 11, 12, 12, 14, 15, 16, 17, 18, -9, 99, -9]
target triple = "nvptx64-nvidia-cuda"
define ptx_kernel void @switch(ptr %x) {
entry:
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %p = getelementptr i32, ptr %x, i32 %t
  %v = load i32, ptr %p
  switch i32 %v, label %other [
    i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %c
    i32 4, label %join
    i32 5, label %join
    i32 6, label %join
    i32 7, label %join
    i32 8, label %join
    i32 -1, label %minus
  ]
a:
  br label %done
b:
  br label %done
c:
  br label %done
join:
  %sum = add i32 %v, 10
  br label %done
minus:
  br label %done
other:
  br label %done
done:
  %r = phi i32 [ 10, %a ], [ 11, %b ], [ 12, %c ], [ %sum, %join ], [ 99, %minus ], [ -9, %other ]
  store i32 %r, ptr %p
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
