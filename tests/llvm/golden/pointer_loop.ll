; A pointer that a loop advances is generic in LLVM; it points into the parameter's buffer and nothing else.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @sum(ptr %from, ptr %to, i64 %count) {
entry:
  %end = getelementptr i32, ptr %from, i64 %count
  br label %loop

loop:
  %p = phi ptr [ %from, %entry ], [ %next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %new, %loop ]
  %v = load i32, ptr %p, align 4
  %new = add i32 %sum, %v
  %next = getelementptr inbounds i8, ptr %p, i64 4
  %done = icmp eq ptr %next, %end
  br i1 %done, label %exit, label %loop

exit:
  store i32 %new, ptr %to, align 4
  ret void
}
