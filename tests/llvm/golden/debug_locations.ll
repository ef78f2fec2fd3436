; What `!dbg` names is the place of an instruction; code inlined from another file counts as its call's line.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scale(ptr noundef captures(none) %data, i32 noundef %factor) #0 !dbg !5 {
entry:
  %0 = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x(), !dbg !8
  %idx = zext nneg i32 %0 to i64, !dbg !9
  %arrayidx = getelementptr inbounds i32, ptr %data, i64 %idx, !dbg !9
  %1 = load i32, ptr %arrayidx, align 4, !dbg !9
  %mul = mul nsw i32 %1, %factor, !dbg !11
  store i32 %mul, ptr %arrayidx, align 4, !dbg !11
  ret void, !dbg !12
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { convergent nounwind "nvvm.maxntid"="64,2,1" "target-cpu"="sm_75" }

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}

!0 = distinct !DICompileUnit(language: DW_LANG_C_plus_plus_14, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "scale.cu", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !DIFile(filename: "builtin_vars.h", directory: "/include")
!4 = !DISubroutineType(types: !13)
!5 = distinct !DISubprogram(name: "scale", scope: !1, file: !1, line: 1, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!6 = distinct !DISubprogram(name: "fetch", scope: !3, file: !3, line: 50, type: !4, unit: !0, spFlags: DISPFlagDefinition)
!7 = distinct !DILexicalBlock(scope: !5, file: !1, line: 3, column: 5)
!8 = !DILocation(line: 53, column: 3, scope: !6, inlinedAt: !10)
!9 = !DILocation(line: 4, column: 9, scope: !7)
!10 = distinct !DILocation(line: 3, column: 13, scope: !5)
!11 = !DILocation(line: 4, column: 17, scope: !7)
!12 = !DILocation(line: 5, column: 1, scope: !5)
!13 = !{null}
