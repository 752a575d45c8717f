# Lanes of one warp, and of two CTAs, take a lock in global memory and add one to a plain counter.
launch 2 1 1 x 64 1 1
option ordered
buffer lock 4
buffer out 4
param lock
param out
code
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    MOV R4, c[0x0][0x218]
    MOV R5, c[0x0][0x21c]
    MOV R6, 0x0
    MOV R7, 0x1
    BSSY.SOFT B0, got
try:
    ATOMG.CAS.E R8, [R2.64], R6, R7
    ISETP.NE.U32.AND P0, PT, R8, RZ, PT, PT
    @P0 BRA try
got:
    BSYNC B0
    LDG.STRONG.E R9, [R4.64]
    IADD3 R9, PT, R9, 0x1, RZ, PT
    STG.E [R4.64], R9
    MEMBAR.SC.GPU
    ATOMG.EXCH.E R8, [R2.64], R6, RZ
    EXIT
expect
out
    00000080
