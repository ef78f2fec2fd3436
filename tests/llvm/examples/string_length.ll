; ModuleID = 'string_length.cu'
source_filename = "string_length.cu"
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; Function Attrs: convergent mustprogress norecurse nounwind
define dso_local void @string_length(ptr nocapture noundef readonly %text, ptr nocapture noundef writeonly %lengths, i32 noundef %width, i32 noundef %rows) local_unnamed_addr #0 {
entry:
  %0 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %1 = tail call noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %mul = mul i32 %1, %0
  %2 = tail call noundef range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %add = add i32 %mul, %2
  %cmp.not = icmp slt i32 %add, %rows
  br i1 %cmp.not, label %if.end, label %cleanup

if.end:                                           ; preds = %entry
  %mul5 = mul nsw i32 %add, %width
  %idx.ext = sext i32 %mul5 to i64
  %add.ptr = getelementptr inbounds i8, ptr %text, i64 %idx.ext
  br label %while.cond

while.cond:                                       ; preds = %land.rhs, %if.end
  %length.0 = phi i32 [ 0, %if.end ], [ %inc, %land.rhs ]
  %cmp6 = icmp slt i32 %length.0, %width
  br i1 %cmp6, label %land.rhs, label %while.end

land.rhs:                                         ; preds = %while.cond
  %idxprom = zext nneg i32 %length.0 to i64
  %arrayidx = getelementptr inbounds i8, ptr %add.ptr, i64 %idxprom
  %3 = load i8, ptr %arrayidx, align 1, !tbaa !4
  %cmp7.not = icmp eq i8 %3, 0
  %inc = add nuw nsw i32 %length.0, 1
  br i1 %cmp7.not, label %while.end, label %while.cond, !llvm.loop !8

while.end:                                        ; preds = %land.rhs, %while.cond
  %idxprom8 = sext i32 %add to i64
  %arrayidx9 = getelementptr inbounds i32, ptr %lengths, i64 %idxprom8
  store i32 %length.0, ptr %arrayidx9, align 4
  br label %cleanup

cleanup:                                          ; preds = %entry, %while.end
  ret void
}

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ctaid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.ntid.x() #1

; Function Attrs: mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none)
declare noundef i32 @llvm.nvvm.read.ptx.sreg.tid.x() #1

attributes #0 = { convergent mustprogress norecurse nounwind "frame-pointer"="all" "no-trapping-math"="true" "stack-protector-buffer-size"="8" "target-cpu"="sm_75" "target-features"="+ptx84,+sm_75" "uniform-work-group-size"="true" }
attributes #1 = { mustprogress nocallback nofree nosync nounwind speculatable willreturn memory(none) }
attributes #2 = { convergent nocallback nounwind }

!llvm.module.flags = !{!0, !1}
!nvvm.annotations = !{!2}
!llvm.ident = !{!3}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
!2 = !{ptr @string_length, !"kernel", i32 1}
!3 = !{!"clang version 19.1.7"}
!4 = !{!6, !6, i64 0}
!5 = !{!"int", !6, i64 0}
!6 = !{!"omnipotent char", !7, i64 0}
!7 = !{!"Simple C++ TBAA"}
!8 = distinct !{!8, !9, !10}
!9 = !{!"llvm.loop.mustprogress"}
!10 = !{!"llvm.loop.unroll.disable"}
