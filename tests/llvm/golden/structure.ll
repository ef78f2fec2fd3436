; A structure that is passed by value becomes one argument for each member.
target triple = "nvptx64-nvidia-cuda"

%struct.view = type { ptr, i32, [2 x i16] }

define ptx_kernel void @fill(ptr noundef byval(%struct.view) align 8 %view, i8 noundef signext %value) {
entry:
  %0 = load ptr, ptr %view, align 8
  %size = getelementptr inbounds %struct.view, ptr %view, i64 0, i32 1
  %1 = load i32, ptr %size, align 8
  %last = getelementptr inbounds %struct.view, ptr %view, i64 0, i32 2, i64 1
  %2 = load i16, ptr %last, align 2
  %3 = sext i16 %2 to i32
  %i = add i32 %1, %3
  %p = getelementptr inbounds i8, ptr %0, i32 %i
  store i8 %value, ptr %p, align 1
  ret void
}
